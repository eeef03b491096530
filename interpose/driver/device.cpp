// SPDX-License-Identifier: Apache-2.0
#include "interpose/driver/device.h"

#include <algorithm>

#include "interpose/driver/table.h"

namespace offload {
namespace {

constexpr int kFirstWithLayouts = 12040;

int attribute(CUdevice device, CUdevice_attribute which, int otherwise) {
  int value = 0;
  return real<Entry::cuDeviceGetAttribute>()(&value, which, device) == CUDA_SUCCESS ? value
                                                                                    : otherwise;
}

uint64_t granularity_of(const CUmemAllocationProp& properties) {
  size_t bytes = 0;
  const CUresult result = real<Entry::cuMemGetAllocationGranularity>()(
      &bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  return result == CUDA_SUCCESS ? bytes : 0;
}

void find_host_memory(Device* device) {
  if (attribute(device->device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                0) != 0) {
    const int node = attribute(device->device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 0);
    device->host = {CU_MEM_LOCATION_TYPE_HOST_NUMA,
                    std::max(node, 0)};  // -1: a machine without NUMA
  } else if (attribute(device->device, CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                       0) != 0) {
    device->host = {CU_MEM_LOCATION_TYPE_HOST, 0};
  } else {
    return;
  }
  const uint64_t bytes = granularity_of(host_memory(*device));
  device->host_memory = bytes != 0;
  device->granularity = std::max(device->granularity, bytes);
}

}  // namespace

CUcontext primary_context(CUdevice device) {
  unsigned flags = 0;
  int active = 0;
  if (real<Entry::cuDevicePrimaryCtxGetState>()(device, &flags, &active) != CUDA_SUCCESS ||
      active == 0)
    return nullptr;
  // Active already, so this only counts, and gives the count back.
  CUcontext primary = nullptr;
  if (real<Entry::cuDevicePrimaryCtxRetain>()(&primary, device) != CUDA_SUCCESS) return nullptr;
  real<Entry::cuDevicePrimaryCtxRelease_v2>()(device);
  return primary;
}

bool query_current_device(Device* device) {
  if (real<Entry::cuCtxGetCurrent>()(&device->context) != CUDA_SUCCESS ||
      device->context == nullptr)
    return false;
  if (real<Entry::cuCtxGetDevice>()(&device->device) != CUDA_SUCCESS) return false;
  if (primary_context(device->device) != device->context) return false;
  size_t total = 0;
  size_t free = 0;
  if (real<Entry::cuMemGetInfo_v2>()(&free, &total) != CUDA_SUCCESS) return false;
  device->total_bytes = total;
  device->free_bytes = free;
  real<Entry::cuDeviceGetName>()(device->name, sizeof(device->name) - 1, device->device);
  real<Entry::cuDriverGetVersion>()(&device->driver_version);
  device->layouts = device->driver_version >= kFirstWithLayouts && has(Entry::cuFuncGetParamInfo);
  device->virtual_memory =
      attribute(device->device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0) != 0;
  device->granularity = granularity_of(device_memory(*device));
  if (device->granularity == 0) device->virtual_memory = false;
  if (device->virtual_memory) find_host_memory(device);
  if (real<Entry::cuDeviceGetDefaultMemPool>()(&device->default_pool, device->device) !=
      CUDA_SUCCESS)
    device->default_pool = nullptr;
  return true;
}

CUmemAllocationProp device_memory(const Device& device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.device};
  return properties;
}

CUmemAllocationProp host_memory(const Device& device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = device.host;
  return properties;
}

}  // namespace offload
