// SPDX-License-Identifier: Apache-2.0
#pragma once
// A kernel whose PTX is interpreted.

#include "tests/simgpu/module/module.h"
#include "tests/simgpu/module/ptx/program.h"

namespace simgpu::ptx {

class PtxKernel final : public Kernel {
 public:
  explicit PtxKernel(Program program);
  bool run(const SimgpuLaunch& launch, void* const* arguments, AccessSink& sink) const override;
  double flops(const SimgpuLaunch&, void* const*) const override { return 0; }
  bool access_unknown() const override { return false; }

 private:
  Program program_;
};

}  // namespace simgpu::ptx
