// SPDX-License-Identifier: Apache-2.0
#pragma once
// What copies and fills name: ranges of memory.

#include "interpose/hooks/operation.h"

namespace offload {

// Names the buffer that the range lies in. CUDA_ERROR_INVALID_VALUE, as the driver would say, if it
// is ours and leaves its allocation. A range that is not ours is the driver's business.
CUresult name_range(Operation& operation, CUdeviceptr at, size_t bytes);

// A copy of `bytes` from `from` to memory at `to`, ours or not: if it is small and comes from
// memory that the host can read, or from ours, it may be a table of pointers.
void watch_for_table(Operation& operation, CUdeviceptr to, const void* from, size_t bytes);

}  // namespace offload
