// SPDX-License-Identifier: Apache-2.0
// Addresses behind which there is no memory.

#include "tests/bench/null_driver/made_up.h"
#include "tests/bench/null_driver/null_driver.h"

using null_driver::made_up_handle;
using null_driver::made_up_range;
using null_driver::the_only_handle;

extern "C" {

// Always the same address: finding another would cost what is not to be measured.
CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t) {
  *address = null_driver::kGranularity;
  return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr) {
  return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream) {
  return cuMemAlloc_v2(address, bytes);
}

CUresult cuMemFreeAsync(CUdeviceptr, CUstream) {
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice) {
  *pool = the_only_handle<CUmemoryPool>();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  return cuDeviceGetDefaultMemPool(pool, device);
}

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = *total = null_driver::kDeviceBytes;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *bytes = null_driver::kGranularity;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr,
                             unsigned long long) {
  *address = made_up_range(bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr, size_t) {
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t, const CUmemAllocationProp*,
                     unsigned long long) {
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(made_up_handle<void*>());
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle) {
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long) {
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr, size_t) {
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) {
  return CUDA_SUCCESS;
}

// Nobody writes to it: nothing is ever moved here.
CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  *memory = reinterpret_cast<void*>(made_up_range(bytes));
  return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void*) {
  return CUDA_SUCCESS;
}

CUresult cuMemcpyAsync(CUdeviceptr, CUdeviceptr, size_t, CUstream) {
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, size_t, CUstream) {
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoHAsync_v2(void*, CUdeviceptr, size_t, CUstream) {
  return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr, const void*, size_t, CUstream) {
  return CUDA_SUCCESS;
}

}  // extern "C"
