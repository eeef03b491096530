// SPDX-License-Identifier: Apache-2.0
#pragma once
// What copies, fills and stream memory operations name where a node of a graph takes them.
// CUDA_ERROR_INVALID_VALUE as name_range() says it.

#include "interpose/hooks/ranges.h"

namespace offload {

CUresult name_copy(Operation& operation, const CUDA_MEMCPY3D* copy);
CUresult name_fill(Operation& operation, CUdeviceptr at, size_t row_bytes, size_t pitch,
                   size_t rows);
// Says whether one of them waits.
bool name_memory_operations(Operation& operation, const CUstreamBatchMemOpParams* operations,
                            unsigned count);

}  // namespace offload
