// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies and fills that leave untouched pages of memory files untouched, so that a simulated 80 GB
// fits into a small machine. Only the executor thread calls them (they move a memory file's read
// position).

#include <cstddef>
#include <cstdint>

#include "tests/simgpu/memory/physical.h"

namespace simgpu {

// `physical` null: plain host memory at `data`.
struct MemoryPiece {
  const PhysicalMemory* physical;
  uint64_t offset;
  std::byte* data;
};

void sparse_copy(const MemoryPiece& to, const MemoryPiece& from, size_t bytes);
// True if every page of the range has been touched.
bool is_touched(const PhysicalMemory& physical, uint64_t offset, size_t bytes);
void sparse_zero(const MemoryPiece& to, size_t bytes);

}  // namespace simgpu
