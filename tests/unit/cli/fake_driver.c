// SPDX-License-Identifier: Apache-2.0
// A driver that answers what FAKE_* variables say: FAKE_INIT (an error code), FAKE_VERSION,
// FAKE_DEVICES, FAKE_VMM, FAKE_HOST_NUMA.
#include <cuda.h>
#include <stdlib.h>
#include <string.h>

static int setting(const char* name, int otherwise) {
  const char* value = getenv(name);
  return value == NULL ? otherwise : atoi(value);
}

CUresult CUDAAPI cuInit(unsigned int flags) {
  (void)flags;
  return (CUresult)setting("FAKE_INIT", 0);
}

CUresult CUDAAPI cuDriverGetVersion(int* version) {
  *version = setting("FAKE_VERSION", 13000);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetCount(int* count) {
  *count = setting("FAKE_DEVICES", 1);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGet(CUdevice* device, int index) {
  *device = index;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetName(char* name, int bytes, CUdevice device) {
  (void)device;
  strncpy(name, "Fake 9000", (size_t)bytes);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  (void)device;
  *bytes = 24ull << 30;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  (void)device;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      break;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      *value = setting("FAKE_VMM", 1);
      break;
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      *value = setting("FAKE_HOST_NUMA", 1);
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp* properties,
                                               CUmemAllocationGranularity_flags option) {
  (void)properties;
  (void)option;
  *bytes = 2ull << 20;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetErrorName(CUresult error, const char** name) {
  *name = error == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_OTHER";
  return CUDA_SUCCESS;
}
