// SPDX-License-Identifier: Apache-2.0
// Questions about devices, versions, limits and peers.

#include <cuda_runtime_api.h>

#include "tests/simgpu/runtime/call.h"
#include "tests/simgpu/runtime/devices.h"

namespace simgpu::runtime {

namespace {

// The driver's handle of a device; `body` gets it.
template <class Body>
cudaError_t with_device(int device, Body body) {
  return with_driver([&](const Driver& api) {
    cudaError_t status = check_device(device);
    CUdevice handle = 0;
    if (status == cudaSuccess) status = call(api.cuDeviceGet, &handle, device);
    return status == cudaSuccess ? body(api, handle) : status;
  });
}

}  // namespace

RUNTIME_WIPED(cudaGetDeviceCount, (int* count), (count)) {
  if (count == nullptr) return remember(cudaErrorInvalidValue);
  *count = 0;
  return with_driver([&](const Driver& api) { return call(api.cuDeviceGetCount, count); });
}

RUNTIME_API cudaDriverGetVersion(int* version) {
  if (version == nullptr) return remember(cudaErrorInvalidValue);
  *version = 0;  // no driver is no error here
  if (open_driver() == cudaErrorInsufficientDriver) return cudaSuccess;
  return remember(call(driver().cuDriverGetVersion, version));
}

RUNTIME_API cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return remember(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

RUNTIME_WIPED(cudaDeviceGetAttribute, (int* value, cudaDeviceAttr attribute, int device),
              (value, attribute, device)) {
  return with_device(device, [&](const Driver& api, CUdevice handle) {
    return call(api.cuDeviceGetAttribute, value, static_cast<CUdevice_attribute>(attribute),
                handle);
  });
}

RUNTIME_API cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return with_device(device, [&](const Driver& api, CUdevice handle) {
    return call(api.cuDeviceGetPCIBusId, text, length, handle);
  });
}

RUNTIME_API cudaDeviceGetByPCIBusId(int* device, const char* text) {
  return with_driver([&](const Driver& api) {
    CUdevice handle = 0;
    const cudaError_t status = call(api.cuDeviceGetByPCIBusId, &handle, text);
    if (status == cudaSuccess) *device = handle;
    return status;
  });
}

RUNTIME_API cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return with_device(device, [&](const Driver& api, CUdevice handle) {
    const cudaError_t status = check_device(peer);
    CUdevice peer_handle = peer;
    return status == cudaSuccess ? call(api.cuDeviceCanAccessPeer, can, handle, peer_handle)
                                 : status;
  });
}

RUNTIME_API cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int source,
                                      int destination) {
  return with_device(source, [&](const Driver& api, CUdevice handle) {
    CUdevice peer_handle = destination;
    return call(api.cuDeviceGetP2PAttribute, value, static_cast<CUdevice_P2PAttribute>(attribute),
                handle, peer_handle);
  });
}

RUNTIME_API cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return with_context([&](const Driver& api) {
    CUcontext context = nullptr;
    const cudaError_t status = primary_context(peer, &context);
    return status == cudaSuccess ? call(api.cuCtxEnablePeerAccess, context, flags) : status;
  });
}

RUNTIME_API cudaDeviceDisablePeerAccess(int peer) {
  return with_context([&](const Driver& api) {
    CUcontext context = nullptr;
    const cudaError_t status = primary_context(peer, &context);
    return status == cudaSuccess ? call(api.cuCtxDisablePeerAccess, context) : status;
  });
}

RUNTIME_API cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return with_context(
      [&](const Driver& api) { return call(api.cuCtxGetStreamPriorityRange, least, greatest); });
}

RUNTIME_API cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return with_context([&](const Driver& api) {
    return call(api.cuCtxGetLimit, value, static_cast<CUlimit>(limit));
  });
}

RUNTIME_API cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return with_context([&](const Driver& api) {
    return call(api.cuCtxSetLimit, static_cast<CUlimit>(limit), value);
  });
}

RUNTIME_API cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return with_context([&](const Driver& api) {
    return call(api.cuCtxGetCacheConfig, reinterpret_cast<CUfunc_cache*>(config));
  });
}

RUNTIME_API cudaDeviceSetCacheConfig(cudaFuncCache config) {
  return with_context([&](const Driver& api) {
    return call(api.cuCtxSetCacheConfig, static_cast<CUfunc_cache>(config));
  });
}

RUNTIME_API cudaGetDeviceFlags(unsigned* flags) {
  return with_driver([&](const Driver& api) {
    int device = 0;
    cudaError_t status = current_device(&device);
    int active = 0;
    CUdevice handle = device;
    if (status == cudaSuccess) {
      status = call(api.cuDevicePrimaryCtxGetState, handle, flags, &active);
    }
    return status;
  });
}

RUNTIME_API cudaSetDeviceFlags(unsigned flags) {
  return with_driver([&](const Driver& api) {
    int device = 0;
    const cudaError_t status = current_device(&device);
    CUdevice handle = device;
    return status == cudaSuccess ? call(api.cuDevicePrimaryCtxSetFlags, handle, flags) : status;
  });
}

RUNTIME_API cudaChooseDevice(int* device, const cudaDeviceProp*) {
  return with_driver([&](const Driver&) {
    *device = 0;
    return check_device(0);
  });
}

// Profilers mark their range with these; there is nothing to start.
RUNTIME_API cudaProfilerStart() {
  return cudaSuccess;
}
RUNTIME_API cudaProfilerStop() {
  return cudaSuccess;
}

RUNTIME_API cudaCtxResetPersistingL2Cache() {
  return with_context([](const Driver& api) { return call(api.cuCtxResetPersistingL2Cache); });
}

extern "C" __attribute__((visibility("default"))) cudaChannelFormatDesc cudaCreateChannelDesc(
    int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

}  // namespace simgpu::runtime
