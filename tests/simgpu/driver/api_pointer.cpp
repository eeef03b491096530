// SPDX-License-Identifier: Apache-2.0
// What an address is.
#include <cstring>

#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/memory/address_space.h"
#include "tests/simgpu/memory/pool.h"
#include "tests/simgpu/memory/vmm.h"
#include "tests/simgpu/memory/window.h"

using simgpu::address_space;
using simgpu::Call;
using simgpu::Mapping;
using simgpu::MemoryKind;
using simgpu::Needs;

namespace {

template <class T>
CUresult put(void* data, T value) {
  std::memcpy(data, &value, sizeof value);
  return CUDA_SUCCESS;
}

CUresult get(Call& call, void* data, CUpointer_attribute attribute, CUdeviceptr address,
             const Mapping* mapping) {
  const bool on_device = mapping != nullptr && mapping->device >= 0;
  const bool managed = mapping != nullptr && mapping->kind == MemoryKind::kManaged;
  const bool vmm = mapping != nullptr && mapping->kind == MemoryKind::kVmm;
  if (attribute == CU_POINTER_ATTRIBUTE_MAPPED) return put(data, mapping != nullptr ? 1 : 0);
  if (mapping == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      // VMM memory belongs to no context; a driver answers with none.
      return put(data, reinterpret_cast<CUcontext>(mapping->context));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put<unsigned>(data, on_device || managed ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put<CUdeviceptr>(data, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return on_device ? CUDA_ERROR_INVALID_VALUE : put<uintptr_t>(data, address);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return put(data, mapping->sync_memops ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return put<unsigned long long>(data, mapping->buffer_id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put<unsigned>(data, mapping->kind == MemoryKind::kManaged ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      if (on_device) return put(data, mapping->device);
      return put(data, call.context->device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return put(data, mapping->kind == MemoryKind::kHeap ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put<CUdeviceptr>(data, mapping->begin);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put<size_t>(data, mapping->bytes);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put<unsigned long long>(
          data, vmm ? static_cast<unsigned>(mapping->handle->properties.requestedHandleTypes) : 0U);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return put(data, vmm ? mapping->handle->properties.allocFlags.gpuDirectRDMACapable
                           : static_cast<int>(mapping->kind == MemoryKind::kHeap));
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put<int>(data, mapping->access[call.context->device]);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put(data, reinterpret_cast<CUmemoryPool>(mapping->pool));
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return put<size_t>(data, mapping->bytes);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return put<CUdeviceptr>(data, mapping->begin);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return put<unsigned long long>(data, mapping->block_id);
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return put(data, 0);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

size_t size_of(CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return 4;
    default:
      return 8;
  }
}

}  // namespace

SIMGPU_API cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return get(call, data, attribute, address, address_space().find(address));
}

// Unlike the single query, an address that means nothing is no error: it gets null values.
SIMGPU_API cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                  CUdeviceptr address) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (count == 0 || attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Mapping* mapping = address_space().find(address);
  for (unsigned i = 0; i < count; ++i) {
    const CUresult result = get(call, data[i], attributes[i], address, mapping);
    if (result == CUDA_ERROR_NOT_SUPPORTED) return result;
    if (result == CUDA_SUCCESS) continue;
    std::memset(data[i], 0, size_of(attributes[i]));
    if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) put(data[i], -2);
  }
  return CUDA_SUCCESS;
}

SIMGPU_API cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                                 CUdeviceptr address) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  Mapping* mapping = address_space().find(address);
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || mapping == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  mapping->sync_memops = *static_cast<const int*>(value) != 0;
  return CUDA_SUCCESS;
}
