// SPDX-License-Identifier: Apache-2.0
#pragma once
// A driver that does nothing and always succeeds, as fast as a call can be: what a program spends
// above it is what its callers cost. It hands out made-up handles and addresses that nothing
// stands behind; every event has passed when it is asked. Any thread. It is a libcuda.so.1, and
// knows nothing of who calls it.

// A name means the symbol that libcuda exports under it.
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#pragma GCC visibility push(default)
#include <cuda.h>

#include <cstddef>

// What a function is here: cast its address to CUfunction. The caller owns it and keeps it.
struct NullKernel {
  size_t parameters = 0;
  size_t parameter_bytes = 8;  // of each
};

// The driver's own entries, whatever stands in front of the exported names.
struct NullDriverEntries {
  decltype(&cuLaunchKernel) launch_kernel;
  decltype(&cuMemAlloc_v2) mem_alloc;
  decltype(&cuMemFree_v2) mem_free;
  decltype(&cuMemAllocAsync) mem_alloc_async;
  decltype(&cuMemFreeAsync) mem_free_async;
  decltype(&cuMemcpyDtoDAsync_v2) memcpy_dtod_async;
  decltype(&cuEventRecord) event_record;
};
extern "C" const NullDriverEntries* null_driver_entries();
#pragma GCC visibility pop
