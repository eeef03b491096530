// SPDX-License-Identifier: Apache-2.0
#pragma once
// A kernel launch. Holds a copy of the arguments, laid out as the kernel's parameter buffer. What
// they name is looked up when the launch is submitted, or captured: by the time it runs, the
// program may have freed it, and the address may be another allocation's.

#include <memory>
#include <vector>

#include "tests/simgpu/exec/name_log.h"
#include "tests/simgpu/exec/op.h"
#include "tests/simgpu/module/module.h"

namespace simgpu {

class KernelOp : public Op {
 public:
  // `parameters` is what the kernel declares; `buffer` at least as large as they reach.
  KernelOp(std::shared_ptr<const Image> image, const Kernel* kernel, const SimgpuLaunch& launch,
           std::vector<std::byte> buffer, Names names);

  void submitted() override;
  void run(Lock& lock) override;
  Cost cost() const override { return {Resource::kCompute, 0, seconds_}; }
  bool effect_first() const override { return true; }
  std::string describe() const override { return "kernel " + kernel_->name(); }

 private:
  class Named;

  void count_named_memory();
  void count(uintptr_t address, size_t bytes);

  std::shared_ptr<const Image> image_;  // keeps the kernel alive after its module was unloaded
  const Kernel* kernel_;
  SimgpuLaunch launch_;
  std::vector<std::byte> buffer_;
  std::vector<void*> arguments_;
  Names names_;
  double bytes_ = 0;
  double seconds_ = 0;
};

}  // namespace simgpu
