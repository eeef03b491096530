// SPDX-License-Identifier: Apache-2.0
// Allocation: device memory, stream-ordered memory, pinned host memory.

#include <cuda_runtime_api.h>

#include "tests/simgpu/runtime/call.h"

namespace simgpu::runtime {

namespace {

void* to_pointer(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);
}

// The program gets it.
void hand_out(const Driver& api, void** pointer, CUdeviceptr address, size_t bytes) {
  *pointer = to_pointer(address);
  if (address != 0 && api.program_allocated != nullptr) api.program_allocated(address, bytes);
}

// Before the driver hears of it: another thread may be given the address at once.
void take_back(const Driver& api, void* pointer) {
  if (api.program_frees != nullptr) api.program_frees(to_device(pointer));
}

template <Flavor flavor>
cudaError_t malloc_async(void** pointer, size_t bytes, cudaStream_t stream) {
  return with_context([&](const Driver& api) {
    if (pointer == nullptr) return cudaErrorInvalidValue;
    CUdeviceptr address = 0;
    const cudaError_t status =
        bytes == 0 ? cudaSuccess : call(api.cuMemAllocAsync[flavor], &address, bytes, stream);
    if (status == cudaSuccess) hand_out(api, pointer, address, bytes);
    return status;
  });
}

template <Flavor flavor>
cudaError_t malloc_from_pool(void** pointer, size_t bytes, cudaMemPool_t pool,
                             cudaStream_t stream) {
  return with_context([&](const Driver& api) {
    if (pointer == nullptr) return cudaErrorInvalidValue;
    CUdeviceptr address = 0;
    const cudaError_t status =
        bytes == 0 ? cudaSuccess
                   : call(api.cuMemAllocFromPoolAsync[flavor], &address, bytes, pool, stream);
    if (status == cudaSuccess) hand_out(api, pointer, address, bytes);
    return status;
  });
}

template <Flavor flavor>
cudaError_t free_async(void* pointer, cudaStream_t stream) {
  return with_context([&](const Driver& api) {
    if (pointer == nullptr) return cudaSuccess;
    take_back(api, pointer);
    return call(api.cuMemFreeAsync[flavor], to_device(pointer), stream);
  });
}

cudaError_t host_alloc(void** pointer, size_t bytes, unsigned flags) {
  return with_context([&](const Driver& api) {
    if (pointer == nullptr) return cudaErrorInvalidValue;
    *pointer = nullptr;
    return bytes == 0 ? cudaSuccess : call(api.cuMemHostAlloc, pointer, bytes, flags);
  });
}

}  // namespace

RUNTIME_WIPED(cudaMalloc, (void** pointer, size_t bytes), (pointer, bytes)) {
  return with_context([&](const Driver& api) {
    if (pointer == nullptr) return cudaErrorInvalidValue;
    // Zero bytes are no error: a null pointer, and success.
    CUdeviceptr address = 0;
    const cudaError_t status = bytes == 0 ? cudaSuccess : call(api.cuMemAlloc, &address, bytes);
    if (status == cudaSuccess) hand_out(api, pointer, address, bytes);
    return status;
  });
}

RUNTIME_WIPED(cudaFree, (void* pointer), (pointer)) {
  return with_context([&](const Driver& api) {
    if (pointer == nullptr) return cudaSuccess;
    take_back(api, pointer);
    return call(api.cuMemFree, to_device(pointer));
  });
}

RUNTIME_API cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return with_context([&](const Driver& api) {
    if (pointer == nullptr || pitch == nullptr) return cudaErrorInvalidValue;
    if (width == 0 || height == 0) {
      *pointer = nullptr;
      *pitch = 0;
      return cudaSuccess;
    }
    constexpr unsigned kElementBytes = 4;
    CUdeviceptr address = 0;
    const cudaError_t status =
        call(api.cuMemAllocPitch, &address, pitch, width, height, kElementBytes);
    if (status == cudaSuccess) hand_out(api, pointer, address, *pitch * height);
    return status;
  });
}

RUNTIME_API cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
  if (pitched == nullptr) return remember(cudaErrorInvalidValue);
  pitched->xsize = extent.width;
  pitched->ysize = extent.height;
  return cudaMallocPitch(&pitched->ptr, &pitched->pitch, extent.width,
                         extent.height * extent.depth);
}

RUNTIME_API cudaMallocManaged(void** pointer, size_t bytes, unsigned flags) {
  return with_context([&](const Driver& api) {
    if (pointer == nullptr) return cudaErrorInvalidValue;
    CUdeviceptr address = 0;
    const cudaError_t status = call(api.cuMemAllocManaged, &address, bytes, flags);
    if (status == cudaSuccess) *pointer = to_pointer(address);
    return status;
  });
}

RUNTIME_PAIR(cudaMallocAsync, _ptsz, (void** pointer, size_t bytes, cudaStream_t stream),
             malloc_async, (pointer, bytes, stream))
RUNTIME_PAIR(cudaMallocFromPoolAsync, _ptsz,
             (void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
             malloc_from_pool, (pointer, bytes, pool, stream))
RUNTIME_PAIR(cudaFreeAsync, _ptsz, (void* pointer, cudaStream_t stream), free_async,
             (pointer, stream))

RUNTIME_API cudaMallocHost(void** pointer, size_t bytes) {
  return host_alloc(pointer, bytes, 0);
}

RUNTIME_API cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  return host_alloc(pointer, bytes, flags);
}

RUNTIME_API cudaFreeHost(void* pointer) {
  return with_context([&](const Driver& api) {
    return pointer == nullptr ? cudaSuccess : call(api.cuMemFreeHost, pointer);
  });
}

RUNTIME_API cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
  return with_context(
      [&](const Driver& api) { return call(api.cuMemHostRegister, pointer, bytes, flags); });
}

RUNTIME_API cudaHostUnregister(void* pointer) {
  return with_context([&](const Driver& api) { return call(api.cuMemHostUnregister, pointer); });
}

RUNTIME_API cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
  return with_context([&](const Driver& api) {
    CUdeviceptr address = 0;
    const cudaError_t status = call(api.cuMemHostGetDevicePointer, &address, host, flags);
    if (status == cudaSuccess) *device = to_pointer(address);
    return status;
  });
}

RUNTIME_API cudaHostGetFlags(unsigned* flags, void* host) {
  return with_context([&](const Driver& api) { return call(api.cuMemHostGetFlags, flags, host); });
}

RUNTIME_API cudaMemGetInfo(size_t* available, size_t* total) {
  return with_context([&](const Driver& api) { return call(api.cuMemGetInfo, available, total); });
}

}  // namespace simgpu::runtime
