// SPDX-License-Identifier: Apache-2.0
// Streams, events, functions: all that is submitted is done at once, as there is nothing to do.

#include "tests/bench/null_driver/made_up.h"
#include "tests/bench/null_driver/null_driver.h"

using null_driver::made_up_handle;
using null_driver::the_only_handle;

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  *stream = made_up_handle<CUstream>();
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream) {
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream, CUcontext* context) {
  *context = the_only_handle<CUcontext>();
  return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  *id = reinterpret_cast<uintptr_t>(stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) {
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream) {
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* event, unsigned) {
  *event = made_up_handle<CUevent>();
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent) {
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent, CUstream) {
  return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent) {
  return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent) {
  return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent, CUevent) {
  *milliseconds = 0;
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule* module, const void*) {
  *module = made_up_handle<CUmodule>();
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule) {
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char*) {
  static NullKernel without_parameters;
  *function = reinterpret_cast<CUfunction>(&without_parameters);
  return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
  const auto& kernel = *reinterpret_cast<const NullKernel*>(function);
  if (index >= kernel.parameters) return CUDA_ERROR_INVALID_VALUE;
  *offset = index * kernel.parameter_bytes;
  *bytes = kernel.parameter_bytes;
  return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel, size_t, size_t*, size_t*) {
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, CUstream, void**, void**) {
  return CUDA_SUCCESS;
}

const NullDriverEntries* null_driver_entries() {
  static constexpr NullDriverEntries entries = {
      .launch_kernel = &cuLaunchKernel,
      .mem_alloc = &cuMemAlloc_v2,
      .mem_free = &cuMemFree_v2,
      .mem_alloc_async = &cuMemAllocAsync,
      .mem_free_async = &cuMemFreeAsync,
      .memcpy_dtod_async = &cuMemcpyDtoDAsync_v2,
      .event_record = &cuEventRecord,
  };
  return &entries;
}

}  // extern "C"
