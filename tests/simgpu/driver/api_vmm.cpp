// SPDX-License-Identifier: Apache-2.0
// Virtual memory management.
#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/driver/statistics.h"
#include "tests/simgpu/exec/costs.h"
#include "tests/simgpu/exec/engine.h"
#include "tests/simgpu/memory/vmm.h"

using simgpu::Call;
using simgpu::Needs;
using simgpu::options;
namespace vmm = simgpu::vmm;

SIMGPU_API cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                         CUmemAllocationGranularity_flags option) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (granularity == nullptr || properties == nullptr ||
      properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
       option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const CUmemLocation& location = properties->location;
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
      (location.id < 0 || location.id >= options().devices)) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    const bool host = location.type == CU_MEM_LOCATION_TYPE_HOST ||
                      location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
    if (!host) return CUDA_ERROR_INVALID_VALUE;
    if (!options().host_vmm) return CUDA_ERROR_NOT_SUPPORTED;
  }
  *granularity = vmm::granularity();
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment,
                               CUdeviceptr hint, unsigned long long flags) {
  Call call(Needs::kDriver, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (address == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return vmm::reserve(address, bytes, alignment, hint);
}

SIMGPU_API cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  Call call(Needs::kDriver, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  return vmm::free_reservation(address, bytes);
}

SIMGPU_API cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                       const CUmemAllocationProp* properties, unsigned long long flags) {
  Call call(Needs::kDriver, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (handle == nullptr || properties == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = vmm::create(handle, bytes, *properties);
  if (result == CUDA_SUCCESS) ++simgpu::statistics().handles_created;
  return result;
}

SIMGPU_API cuMemRelease(CUmemGenericAllocationHandle handle) {
  Call call(Needs::kDriver, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  return vmm::release(handle);
}

SIMGPU_API cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                    CUmemGenericAllocationHandle handle, unsigned long long flags) {
  Call call(Needs::kDriver, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = vmm::map(address, bytes, offset, handle);
  if (result == CUDA_SUCCESS) ++simgpu::statistics().mappings_made;
  return result;
}

SIMGPU_API cuMemUnmap(CUdeviceptr address, size_t bytes) {
  Call call(Needs::kDriver, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  const CUresult result = vmm::unmap(address, bytes);
  if (result == CUDA_SUCCESS) {
    ++simgpu::statistics().mappings_removed;
    simgpu::engine().spend_keeping_driver(simgpu::mapping_cost_ns(bytes));
  }
  return result;
}

SIMGPU_API cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* descriptors,
                          size_t count) {
  Call call(Needs::kDriver, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (descriptors == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = vmm::set_access(address, bytes, descriptors, count);
  if (result == CUDA_SUCCESS) simgpu::engine().spend_keeping_driver(simgpu::mapping_cost_ns(bytes));
  return result;
}

SIMGPU_API cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                          CUdeviceptr address) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return vmm::get_access(flags, *location, address);
}

SIMGPU_API cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return vmm::retain(handle, reinterpret_cast<uintptr_t>(address));
}

SIMGPU_API cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                  CUmemGenericAllocationHandle handle) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  const simgpu::PhysicalHandle* found = vmm::find(handle);
  if (properties == nullptr || found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *properties = found->properties;
  return CUDA_SUCCESS;
}
