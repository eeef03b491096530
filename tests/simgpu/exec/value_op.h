// SPDX-License-Identifier: Apache-2.0
#pragma once
// cuStreamWaitValue and cuStreamWriteValue: a stream that waits for, or sets, a word of memory. The
// word itself is not checked for races (it is a flag); what is behind a wait comes after the write
// of the flag.

#include <cuda.h>

#include "tests/simgpu/exec/op.h"
#include "tests/simgpu/memory/allotments.h"

namespace simgpu {

class WaitValueOp : public Op {
 public:
  WaitValueOp(uintptr_t address, uint64_t value, size_t bytes, unsigned flags)
      : address_(address), value_(value), bytes_(bytes), flags_(flags) {}
  bool ready() const override;
  bool polls() const override { return true; }
  void run(Lock& lock) override;
  std::string describe() const override { return "wait for a value in memory"; }

 private:
  uintptr_t address_;
  uint64_t value_;
  size_t bytes_;  // 4 or 8
  unsigned flags_;
};

class WriteValueOp : public Op {
 public:
  WriteValueOp(uintptr_t address, uint64_t value, size_t bytes)
      : address_(address), value_(value), bytes_(bytes), allotment_(allotments().find(address)) {}
  void run(Lock& lock) override;
  std::string describe() const override { return "write of a value to memory"; }

 private:
  uintptr_t address_;
  uint64_t value_;
  size_t bytes_;
  AllotmentRef allotment_;
};

}  // namespace simgpu
