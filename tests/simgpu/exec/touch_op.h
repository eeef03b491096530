// SPDX-License-Identifier: Apache-2.0
#pragma once
// Adds one to every byte of a range: what the made-up entries do.

#include <cstdint>

#include "tests/simgpu/exec/op.h"
#include "tests/simgpu/memory/allotments.h"

namespace simgpu {

class TouchOp : public Op {
 public:
  TouchOp(uintptr_t address, size_t bytes)
      : address_(address), bytes_(bytes), allotment_(allotments().find(address)) {}
  void run(Lock& lock) override;
  std::string describe() const override { return "an entry that no header knows"; }

 private:
  uintptr_t address_;
  size_t bytes_;
  AllotmentRef allotment_;
};

}  // namespace simgpu
