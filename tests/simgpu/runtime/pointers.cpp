// SPDX-License-Identifier: Apache-2.0
// What an address is, and handles for other processes.

#include <cuda_runtime_api.h>

#include "tests/simgpu/runtime/call.h"

namespace simgpu::runtime {

// The two APIs' handles are the same bytes.
static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle));
static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle));

RUNTIME_WIPED(cudaPointerGetAttributes, (cudaPointerAttributes * attributes, const void* pointer),
              (attributes, pointer)) {
  return with_context([&](const Driver& api) {
    if (attributes == nullptr) return cudaErrorInvalidValue;
    unsigned type = 0;
    unsigned managed = 0;
    int device = 0;
    void* device_pointer = nullptr;
    void* host_pointer = nullptr;
    CUpointer_attribute wanted[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void* values[] = {&type, &managed, &device, &device_pointer, &host_pointer};
    const cudaError_t status =
        call(api.cuPointerGetAttributes, 5U, wanted, values, to_device(pointer));
    if (status != cudaSuccess) return status;
    *attributes = {};
    if (type == 0) {
      // Memory that the driver does not know is no error.
      attributes->type = cudaMemoryTypeUnregistered;
      attributes->device = cudaInvalidDeviceId;
      attributes->hostPointer = const_cast<void*>(pointer);
      return cudaSuccess;
    }
    attributes->type = managed != 0                 ? cudaMemoryTypeManaged
                       : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                                                    : cudaMemoryTypeDevice;
    attributes->device = device;
    attributes->devicePointer = device_pointer;
    attributes->hostPointer = host_pointer;
    return cudaSuccess;
  });
}

RUNTIME_API cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  return with_context([&](const Driver& api) {
    return call(api.cuIpcGetMemHandle, reinterpret_cast<CUipcMemHandle*>(handle),
                to_device(pointer));
  });
}

RUNTIME_API cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned flags) {
  return with_context([&](const Driver& api) {
    CUipcMemHandle raw;
    __builtin_memcpy(&raw, &handle, sizeof(raw));
    return call(api.cuIpcOpenMemHandle, reinterpret_cast<CUdeviceptr*>(pointer), raw, flags);
  });
}

RUNTIME_API cudaIpcCloseMemHandle(void* pointer) {
  return with_context(
      [&](const Driver& api) { return call(api.cuIpcCloseMemHandle, to_device(pointer)); });
}

RUNTIME_API cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return with_context([&](const Driver& api) {
    return call(api.cuIpcGetEventHandle, reinterpret_cast<CUipcEventHandle*>(handle), event);
  });
}

RUNTIME_API cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return with_context([&](const Driver& api) {
    CUipcEventHandle raw;
    __builtin_memcpy(&raw, &handle, sizeof(raw));
    return call(api.cuIpcOpenEventHandle, event, raw);
  });
}

}  // namespace simgpu::runtime
