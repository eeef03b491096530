// SPDX-License-Identifier: Apache-2.0
#pragma once
// The driver as a client reaches it: a table of entries filled by one of the roads that programs
// take.

#include <cuda.h>

#include <string>

namespace clients {

// A name here is what cuda.h makes of it: cuMemAlloc is cuMemAlloc_v2.
// clang-format off
#define CLIENT_ENTRIES(ENTRY) \
  ENTRY(cuInit) ENTRY(cuDeviceGet) ENTRY(cuDevicePrimaryCtxRetain) \
  ENTRY(cuDevicePrimaryCtxReset) ENTRY(cuCtxCreate) ENTRY(cuCtxDestroy) ENTRY(cuCtxSetCurrent) \
  ENTRY(cuCtxSynchronize) ENTRY(cuModuleLoadData) ENTRY(cuModuleGetFunction) \
  ENTRY(cuModuleUnload) ENTRY(cuMemAlloc) ENTRY(cuMemAllocPitch) ENTRY(cuMemFree) \
  ENTRY(cuMemAllocAsync) ENTRY(cuMemAllocFromPoolAsync) ENTRY(cuMemFreeAsync) \
  ENTRY(cuMemcpyHtoD) ENTRY(cuMemcpyDtoH) ENTRY(cuMemcpyHtoDAsync) ENTRY(cuMemcpyDtoHAsync) \
  ENTRY(cuMemcpyDtoDAsync) ENTRY(cuMemcpyAsync) ENTRY(cuMemcpy) ENTRY(cuMemcpy2D) \
  ENTRY(cuMemcpy2DAsync) ENTRY(cuMemsetD32) ENTRY(cuMemsetD32Async) ENTRY(cuMemsetD8) \
  ENTRY(cuMemsetD2D32) ENTRY(cuLaunchKernel) ENTRY(cuLaunchKernelEx) \
  ENTRY(cuLaunchCooperativeKernel) ENTRY(cuLaunchHostFunc) ENTRY(cuStreamCreate) \
  ENTRY(cuStreamDestroy) ENTRY(cuStreamSynchronize) ENTRY(cuStreamWaitEvent) \
  ENTRY(cuStreamWaitValue32) ENTRY(cuStreamWriteValue32) ENTRY(cuEventCreate) \
  ENTRY(cuEventRecord) ENTRY(cuEventSynchronize) ENTRY(cuEventDestroy) \
  ENTRY(cuPointerGetAttribute) ENTRY(cuPointerGetAttributes) ENTRY(cuMemGetAddressRange) \
  ENTRY(cuMemGetInfo) ENTRY(cuDeviceGetDefaultMemPool) ENTRY(cuMemPoolGetAttribute) \
  ENTRY(cuMemPoolSetAttribute) ENTRY(cuMemPoolTrimTo) ENTRY(cuMemHostAlloc) \
  ENTRY(cuMemFreeHost) ENTRY(cuTensorMapEncodeTiled) ENTRY(cuIpcGetMemHandle)
// clang-format on

struct Cuda {
#define ENTRY(name) decltype(&::name) name = nullptr;
  CLIENT_ENTRIES(ENTRY)
#undef ENTRY
  // Any other entry by its base name, by cuGetProcAddress; null if the road has no such door.
  void* (*other)(const char* base) = nullptr;
};

// "linked", or, in the clients that are not linked to the driver: "dlsym", "dlsym-per-thread",
// "proc", "proc-per-thread". Ends the process if an entry is missing.
Cuda take_road(const std::string& road);

}  // namespace clients
