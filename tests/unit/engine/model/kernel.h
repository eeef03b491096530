// SPDX-License-Identifier: Apache-2.0
#pragma once
// Modelled kernels. A kernel reads all of what its arguments touch, and writes values that depend
// on what it is and what it read. It knows what it would have read without the engine: a difference
// is a Failure. Runs at once, when the GPU gets to it, through the addresses that it was given.

#include <cstdint>
#include <vector>

#include "tests/unit/engine/model/memory.h"

namespace offload::model {

enum class Mode : uint8_t {
  kWrite,    // writes all, reads nothing
  kUpdate,   // reads all, writes all
  kRead,     // reads all
  kNothing,  // named but not touched: a phantom
};

inline bool reads(Mode mode) {
  return mode == Mode::kUpdate || mode == Mode::kRead;
}
inline bool writes(Mode mode) {
  return mode == Mode::kUpdate || mode == Mode::kWrite;
}

// What a kernel makes of all the cells that it reads.
uint64_t fold(const std::vector<Cell>& cells);

// An argument as the GPU gets it.
struct KernelArg {
  Address address;
  uint64_t bytes;
  Mode mode;
  int tensor;
  uint64_t expected;        // what it reads
  std::vector<Cell> cells;  // the same, for a replay
};

// `value`: what it writes depends on this.
void run_kernel(Memory& memory, const std::vector<KernelArg>& args, uint64_t op, uint64_t value);

}  // namespace offload::model
