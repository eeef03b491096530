// SPDX-License-Identifier: Apache-2.0
// Managed memory, as plain memory that host and devices always see: nothing migrates, so advice and
// prefetching are checked and then change nothing.
#include <cstring>

#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/memory/address_space.h"
#include "tests/simgpu/memory/host_blocks.h"

using simgpu::address_space;
using simgpu::Call;
using simgpu::DefaultStream;
using simgpu::Mapping;
using simgpu::MemoryKind;
using simgpu::Needs;

namespace {

bool is_managed(CUdeviceptr address, size_t bytes) {
  const Mapping* mapping = address_space().find(address);
  return bytes != 0 && mapping != nullptr && mapping->kind == MemoryKind::kManaged &&
         address_space().is_one_range(address, bytes);
}

bool is_location(const CUmemLocation& location) {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return location.id >= 0 && location.id < simgpu::options().devices;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      return true;
    default:
      return false;
  }
}

CUmemLocation location_of(CUdevice device) {
  if (device == CU_DEVICE_CPU) return {CU_MEM_LOCATION_TYPE_HOST, 0};
  return {CU_MEM_LOCATION_TYPE_DEVICE, device};
}

template <DefaultStream preset>
CUresult prefetch_2(CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags,
                    CUstream handle) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  const simgpu::Stream* stream = call.stream(handle, preset);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult error = Call::wait_error(*stream); error != CUDA_SUCCESS) return error;
  if (flags != 0 || !is_managed(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return is_location(location) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

template <DefaultStream preset>
CUresult prefetch_1(CUdeviceptr address, size_t bytes, CUdevice device, CUstream handle) {
  return prefetch_2<preset>(address, bytes, location_of(device), 0, handle);
}

// "Attaching" is one of the operations that a capture cannot take.
template <DefaultStream preset>
CUresult attach(CUstream handle, CUdeviceptr address, size_t bytes, unsigned) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  const simgpu::Stream* stream = call.stream(handle, preset);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult error = Call::wait_error(*stream); error != CUDA_SUCCESS) return error;
  const Mapping* mapping = address_space().find(address);
  const bool whole = mapping != nullptr && mapping->begin == address &&
                     mapping->kind == MemoryKind::kManaged &&
                     (bytes == 0 || bytes == mapping->bytes);
  return whole ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult advise(CUdeviceptr address, size_t bytes, CUmem_advise advice,
                const CUmemLocation& location) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY ||
      !is_managed(address, bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool names_nobody =
      advice == CU_MEM_ADVISE_SET_READ_MOSTLY || advice == CU_MEM_ADVISE_UNSET_READ_MOSTLY;
  return names_nobody || is_location(location) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace

SIMGPU_API cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned int flags) {
  Call call(Needs::kContext, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (address == nullptr || bytes == 0 ||
      (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  void* pointer = nullptr;
  const CUresult result = simgpu::host_blocks::allocate(&pointer, bytes, 0, &call.context->owner());
  if (result != CUDA_SUCCESS) return result;
  *address = reinterpret_cast<CUdeviceptr>(pointer);
  address_space().find(*address)->kind = MemoryKind::kManaged;
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device) {
  const simgpu::ApiName api_name(__func__);
  return advise(address, bytes, advice, location_of(device));
}
SIMGPU_API cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice,
                          CUmemLocation location) {
  const simgpu::ApiName api_name(__func__);
  return advise(address, bytes, advice, location);
}

SIMGPU_API cuMemRangeGetAttribute(void* data, size_t size, CUmem_range_attribute,
                                  CUdeviceptr address, size_t bytes) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (data == nullptr || size == 0 || !is_managed(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  std::memset(data, 0, size);  // no advice was ever kept
  return CUDA_SUCCESS;
}

SIMGPU_STREAM_API(cuMemPrefetchAsync, _ptsz, prefetch_1,
                  (CUdeviceptr p, size_t n, CUdevice device, CUstream s), (p, n, device, s))
SIMGPU_STREAM_API(cuMemPrefetchAsync_v2, _ptsz, prefetch_2,
                  (CUdeviceptr p, size_t n, CUmemLocation location, unsigned int flags, CUstream s),
                  (p, n, location, flags, s))
SIMGPU_STREAM_API(cuStreamAttachMemAsync, _ptsz, attach,
                  (CUstream s, CUdeviceptr p, size_t n, unsigned int flags), (s, p, n, flags))
