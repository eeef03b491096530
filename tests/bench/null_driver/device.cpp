// SPDX-License-Identifier: Apache-2.0
// One device, its primary context, and what may be asked of them.

#include <algorithm>
#include <cstring>

#include "tests/bench/null_driver/made_up.h"
#include "tests/bench/null_driver/null_driver.h"

using null_driver::the_only_handle;

extern "C" {

CUresult cuInit(unsigned) {
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult, const char** name) {
  *name = "CUDA_SUCCESS";
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "no error";
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int bytes, CUdevice) {
  constexpr char kName[] = "null device";
  std::memcpy(name, kName, std::min<size_t>(sizeof(kName), static_cast<size_t>(bytes)));
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  *bytes = null_driver::kDeviceBytes;
  return CUDA_SUCCESS;
}

// It can map memory, and no host memory: what cannot be copied cannot be probed.
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  *context = the_only_handle<CUcontext>();
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext) {
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext) {
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  return cuDevicePrimaryCtxRetain(context, 0);
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  return cuDevicePrimaryCtxRetain(context, 0);
}

CUresult cuCtxGetDevice(CUdevice* device) {
  *device = 0;
  return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode*) {
  return CUDA_SUCCESS;
}

}  // extern "C"
