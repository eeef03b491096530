// SPDX-License-Identifier: Apache-2.0
#include "interpose/hooks/pointer_attributes.h"

#include <cstring>

namespace offload {
namespace {

template <typename T>
AttributeAnswer put(void* value, T answer) {
  std::memcpy(value, &answer, sizeof(answer));
  return AttributeAnswer::kAnswered;
}

constexpr unsigned kReadWrite =
    3;  // CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: CUDA_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE

size_t bytes_of(CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return sizeof(int);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return sizeof(bool);
    default:
      return sizeof(void*);
  }
}

}  // namespace

AttributeAnswer answer_attribute(const Device& device, const AllocationInfo& allocation,
                                 CUpointer_attribute attribute, CUdeviceptr address, void* value) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put(value, device.context);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put<unsigned>(value, CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put(value, address);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return put<unsigned long long>(value, allocation.id);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put<int>(value, device.device);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return put<CUdeviceptr>(value, allocation.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return put<size_t>(value, allocation.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put(value, true);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put<unsigned>(value, kReadWrite);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return put(value, false);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put<unsigned long long>(value, 0);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put<CUmemoryPool>(value, nullptr);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
      return AttributeAnswer::kNone;
    default:
      return AttributeAnswer::kAskDriver;
  }
}

void clear_attribute(CUpointer_attribute attribute, void* value) {
  if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
    put<int>(value, CU_DEVICE_INVALID);
  } else if (attribute != CU_POINTER_ATTRIBUTE_P2P_TOKENS) {
    std::memset(value, 0, bytes_of(attribute));
  }
}

}  // namespace offload
