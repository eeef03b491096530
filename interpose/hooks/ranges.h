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

// Memory from cuMemAlloc can be copied whatever device is current and without peer access. Memory
// like ours is reached from its own device alone; copies of other devices' must be told its
// context. True where that is needed, because one end at least is ours: the contexts of both, null
// for the host's end. `stream`: where it runs, null for the default stream.
struct Ends {
  CUcontext to = nullptr;
  CUcontext from = nullptr;
};
bool lie_apart(CUdeviceptr to, CUdeviceptr from, CUstream stream, Ends* ends);
// The same where one end is known to be the host's: null, or the context of the other.
CUcontext context_elsewhere(CUdeviceptr at, CUstream stream);

}  // namespace offload
