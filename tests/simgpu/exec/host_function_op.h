// SPDX-License-Identifier: Apache-2.0
#pragma once
// A host function in a stream (cuLaunchHostFunc, cuStreamAddCallback). Runs on its own thread,
// without the lock.

#include <cuda.h>

#include "tests/simgpu/exec/op.h"

namespace simgpu {

class HostFunctionOp : public Op {
 public:
  HostFunctionOp(CUhostFn function, void* data) : function_(function), data_(data) {}
  HostFunctionOp(CUstreamCallback callback, CUstream handle, void* data)
      : callback_(callback), handle_(handle), data_(data) {}

  void run(Lock& lock) override;
  bool on_host() const override { return true; }
  // A lost context still calls back, with its error.
  bool touches_memory() const override { return function_ != nullptr; }
  std::string describe() const override { return "host function"; }

 private:
  CUhostFn function_ = nullptr;
  CUstreamCallback callback_ = nullptr;
  CUstream handle_ = nullptr;
  void* data_ = nullptr;
};

}  // namespace simgpu
