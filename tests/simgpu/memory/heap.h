// SPDX-License-Identifier: Apache-2.0
#pragma once
// cuMemAlloc: large requests get whole blocks of 2 MiB, small ones share a block, all aligned to
// 512 bytes, as a real driver does it. Driver's lock. (Blocks are smaller when SIMGPU_GRANULARITY
// is.)

#include <cuda.h>

#include "tests/simgpu/memory/mapping.h"

namespace simgpu::heap {

inline constexpr size_t kAlignment = 512;

size_t block_bytes();

CUresult allocate(CUdeviceptr* address, size_t bytes, Context* context, int device);
// The mapping must be one that allocate made. Nothing may use it any more.
void free(Mapping* mapping);

// Whole blocks of a device's memory, shown to the device; for this heap and for pools. Blocks given
// back lately stay shown (no translation leads to them) and are the next ones of their size: a
// program that allocates and frees without pause would else spend more on mappings than on its
// kernels. Address 0: out of memory.
struct Block {
  uintptr_t begin = 0;
  size_t bytes = 0;
  uint64_t offset = 0;
  bool populated = false;  // see Mapping
};
Block take_block(int device, size_t bytes);
void give_block(int device, const Block& block);

}  // namespace simgpu::heap
