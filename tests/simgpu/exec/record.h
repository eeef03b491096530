// SPDX-License-Identifier: Apache-2.0
#pragma once
// A point in a stream's work: what an event holds after it was recorded. Done when all before it is
// done.

#include <cstdint>
#include <memory>

#include "tests/simgpu/check/vector_clock.h"

namespace simgpu {

struct Stream;

struct Record {
  Stream* stream = nullptr;  // streams are never freed, only reused with rising numbers
  uint64_t number = 0;       // the operation of the stream that this point is
  bool done = false;
  int64_t time_ns = 0;
  VectorClock clock;  // what is finished at this point; filled when done
};

using RecordRef = std::shared_ptr<Record>;

}  // namespace simgpu
