// SPDX-License-Identifier: Apache-2.0
#pragma once
// Host memory that the device may use: allocated pinned (cuMemHostAlloc) or registered
// (cuMemHostRegister). Both have the same address for host and device. Driver's lock.

#include <cuda.h>

#include "tests/simgpu/memory/mapping.h"

namespace simgpu::host_blocks {

CUresult allocate(void** pointer, size_t bytes, unsigned flags, Context* context);
// Nothing may use it any more.
CUresult free(void* pointer);
// Either kind.
void free_any(Mapping* mapping);
CUresult add_registered(void* pointer, size_t bytes, unsigned flags, Context* context);
CUresult remove_registered(void* pointer);

}  // namespace simgpu::host_blocks
