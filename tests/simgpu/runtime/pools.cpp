// SPDX-License-Identifier: Apache-2.0
// Memory pools of stream-ordered allocation.

#include <cuda_runtime_api.h>

#include "tests/simgpu/runtime/call.h"
#include "tests/simgpu/runtime/devices.h"

namespace simgpu::runtime {

// The two APIs' structs differ in the names of their types only.
static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));
static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));
static_assert(sizeof(cudaMemLocation) == sizeof(CUmemLocation));

namespace {

template <class Body>
cudaError_t with_device(int device, Body body) {
  return with_driver([&](const Driver& api) {
    const cudaError_t status = check_device(device);
    CUdevice handle = device;
    return status == cudaSuccess ? body(api, handle) : status;
  });
}

}  // namespace

RUNTIME_API cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return with_device(device, [&](const Driver& api, CUdevice handle) {
    return call(api.cuDeviceGetDefaultMemPool, pool, handle);
  });
}

RUNTIME_API cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return with_device(device, [&](const Driver& api, CUdevice handle) {
    return call(api.cuDeviceGetMemPool, pool, handle);
  });
}

RUNTIME_API cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return with_device(device, [&](const Driver& api, CUdevice handle) {
    return call(api.cuDeviceSetMemPool, handle, pool);
  });
}

RUNTIME_API cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return with_driver([&](const Driver& api) {
    return call(api.cuMemPoolCreate, pool, reinterpret_cast<const CUmemPoolProps*>(properties));
  });
}

RUNTIME_API cudaMemPoolDestroy(cudaMemPool_t pool) {
  return with_driver([&](const Driver& api) { return call(api.cuMemPoolDestroy, pool); });
}

RUNTIME_API cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes) {
  return with_driver(
      [&](const Driver& api) { return call(api.cuMemPoolTrimTo, pool, keep_bytes); });
}

RUNTIME_API cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return with_driver([&](const Driver& api) {
    return call(api.cuMemPoolSetAttribute, pool, static_cast<CUmemPool_attribute>(attribute),
                value);
  });
}

RUNTIME_API cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return with_driver([&](const Driver& api) {
    return call(api.cuMemPoolGetAttribute, pool, static_cast<CUmemPool_attribute>(attribute),
                value);
  });
}

RUNTIME_API cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* descriptions,
                                 size_t count) {
  return with_driver([&](const Driver& api) {
    return call(api.cuMemPoolSetAccess, pool,
                reinterpret_cast<const CUmemAccessDesc*>(descriptions), count);
  });
}

RUNTIME_API cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool,
                                 cudaMemLocation* location) {
  return with_driver([&](const Driver& api) {
    return call(api.cuMemPoolGetAccess, reinterpret_cast<CUmemAccess_flags*>(flags), pool,
                reinterpret_cast<CUmemLocation*>(location));
  });
}

}  // namespace simgpu::runtime
