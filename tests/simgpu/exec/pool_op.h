// SPDX-License-Identifier: Apache-2.0
#pragma once
// The points in a stream where a stream-ordered allocation begins and ends. Between them the
// addresses may be used.

#include "tests/simgpu/exec/op.h"

namespace simgpu {

class AllocateOp : public Op {
 public:
  // `after`: the end of what used the memory before; null if there was nothing.
  AllocateOp(uintptr_t address, RecordRef after) : address_(address), after_(std::move(after)) {}
  void run(Lock& lock) override;
  std::string describe() const override { return "cuMemAllocAsync"; }

 private:
  uintptr_t address_;
  RecordRef after_;
};

class FreeOp : public Op {
 public:
  FreeOp(uintptr_t address, RecordRef freed) : address_(address), freed_(std::move(freed)) {}
  void run(Lock& lock) override;
  // A lost context must still count it as done.
  bool touches_memory() const override { return false; }
  std::string describe() const override { return "cuMemFreeAsync"; }

 private:
  uintptr_t address_;
  RecordRef freed_;
};

}  // namespace simgpu
