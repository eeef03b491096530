// SPDX-License-Identifier: Apache-2.0
// A driver that only counts what it is asked for. It knows nothing but its version, 1.0.

#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define STUB_API extern "C" __attribute__((visibility("default")))

namespace {

struct Counts {
  int legacy;
  int per_thread;
  int virtual_memory;
} counts;

CUresult driver_version(int* version) {
  *version = 1000;
  return CUDA_SUCCESS;
}

}  // namespace

STUB_API const Counts* stub_counts() {
  return &counts;
}

STUB_API CUresult cuGetProcAddress_v2(const char* symbol, void** entry, int, cuuint64_t flags,
                                      CUdriverProcAddressQueryResult* result) {
  ++(flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM ? counts.per_thread : counts.legacy);
  if (std::strcmp(symbol, "cuMemMap") == 0) ++counts.virtual_memory;
  *entry = nullptr;
  *result = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if (std::strcmp(symbol, "cuDriverGetVersion") != 0) return CUDA_ERROR_NOT_FOUND;
  *entry = reinterpret_cast<void*>(driver_version);
  *result = CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}
