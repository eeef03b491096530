// SPDX-License-Identifier: Apache-2.0
#include "interpose/hooks/pointer_attributes.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "interpose/engine/edges.h"

namespace offload {
namespace {

template <typename T>
AttributeAnswer put(void* value, T answer) {
  std::memcpy(value, &answer, sizeof(answer));
  return AttributeAnswer::kAnswered;
}

AttributeAnswer put_boolean(void* value, bool answer, size_t bytes) {
  std::memset(value, 0, bytes);
  std::memset(value, answer ? 1 : 0, 1);
  return AttributeAnswer::kAnswered;
}

// Allocations that were made synchronous, of which there are few; the last that there is room for.
struct Synchronous {
  CUdevice device = -1;
  uint64_t id = 0;
};
constexpr size_t kMostSynchronous = 1024;
constinit PlainMutex synchronous_mutex;
constinit Synchronous synchronous[kMostSynchronous];
constinit size_t synchronous_count = 0;  // ever noted

Synchronous* find_synchronous(CUdevice device, uint64_t id) {
  Synchronous* const end = synchronous + std::min(synchronous_count, kMostSynchronous);
  Synchronous* const at = std::find_if(synchronous, end, [=](const Synchronous& each) {
    return each.device == device && each.id == id;
  });
  return at == end ? nullptr : at;
}

bool is_synchronous(const Device& device, const AllocationInfo& allocation) {
  const std::lock_guard lock(synchronous_mutex);
  return find_synchronous(device.device, allocation.id) != nullptr;
}

constexpr unsigned kReadWrite =
    3;  // CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: CUDA_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE

size_t bytes_of(CUpointer_attribute attribute, size_t boolean_bytes) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return sizeof(int);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return boolean_bytes;
    default:
      return sizeof(void*);
  }
}

}  // namespace

void set_synchronous(const Device& device, const AllocationInfo& allocation, bool wanted) {
  const std::lock_guard lock(synchronous_mutex);
  Synchronous* const known = find_synchronous(device.device, allocation.id);
  if (known != nullptr && !wanted) *known = {};
  if (known == nullptr && wanted)
    synchronous[synchronous_count++ % kMostSynchronous] = {device.device, allocation.id};
}

AttributeAnswer answer_attribute(const Device& device, const AllocationInfo& allocation,
                                 size_t boolean_bytes, CUpointer_attribute attribute,
                                 CUdeviceptr address, void* value) {
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
      return put_boolean(value, true, boolean_bytes);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return put_boolean(value, is_synchronous(device, allocation), boolean_bytes);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put<unsigned>(value, kReadWrite);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return put_boolean(value, false, boolean_bytes);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put<unsigned long long>(value, 0);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put(value, allocation.stream_ordered ? device.default_pool : nullptr);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
      return AttributeAnswer::kNone;
    default:
      return AttributeAnswer::kAskDriver;
  }
}

void clear_attribute(CUpointer_attribute attribute, size_t boolean_bytes, void* value) {
  if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
    put<int>(value, CU_DEVICE_INVALID);
  } else if (attribute != CU_POINTER_ATTRIBUTE_P2P_TOKENS) {
    std::memset(value, 0, bytes_of(attribute, boolean_bytes));
  }
}

}  // namespace offload
