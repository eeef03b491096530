// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kinds of kernel without a program of their own here: those with a CPU twin, and those of
// unknown effect. (The third kind, interpreted PTX, is in ptx/kernel.h.)

#include <memory>
#include <string>
#include <vector>

#include "tests/simgpu/module/module.h"

namespace simgpu {

class TwinKernel final : public Kernel {
 public:
  explicit TwinKernel(const SimgpuTwin& twin);
  bool run(const SimgpuLaunch& launch, void* const* arguments, AccessSink& sink) const override;
  double flops(const SimgpuLaunch& launch, void* const* arguments) const override;
  bool access_unknown() const override { return twin_.access == nullptr; }

 private:
  const SimgpuTwin& twin_;
};

class UnknownKernel final : public Kernel {
 public:
  UnknownKernel(std::string name, std::vector<KernelParameter> parameters);
  bool run(const SimgpuLaunch& launch, void* const* arguments, AccessSink& sink) const override;
  double flops(const SimgpuLaunch& launch, void* const* arguments) const override;
  bool access_unknown() const override { return true; }
};

}  // namespace simgpu
