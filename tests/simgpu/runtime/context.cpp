// SPDX-License-Identifier: Apache-2.0
// Devices and their primary contexts: which one a thread works with, made current at the thread's
// first call.

#include <cuda_runtime_api.h>

#include <atomic>
#include <mutex>

#include "tests/simgpu/runtime/call.h"
#include "tests/simgpu/runtime/devices.h"

namespace simgpu::runtime {
namespace {

constexpr int kMostDevices = 64;

// The lock guards retaining and resetting; a context that is there is read without it.
std::mutex retain_lock;
std::atomic<CUcontext> primary[kMostDevices];
std::atomic<CUcontext> retired[kMostDevices];  // what cudaDeviceReset() destroyed last
std::atomic<unsigned> resets{0};

cudaError_t retain_primary(int device, CUcontext* context) {
  *context = primary[device].load(std::memory_order_acquire);
  if (*context != nullptr) return cudaSuccess;
  const std::lock_guard lock(retain_lock);
  *context = primary[device].load(std::memory_order_relaxed);
  if (*context != nullptr) return cudaSuccess;
  CUdevice handle = 0;
  cudaError_t status = call(driver().cuDeviceGet, &handle, device);
  if (status == cudaSuccess) status = call(driver().cuDevicePrimaryCtxRetain, context, handle);
  if (status == cudaSuccess) primary[device].store(*context, std::memory_order_release);
  return status;
}

bool is_retired(CUcontext context) {
  for (const auto& old : retired) {
    if (old.load() == context) return true;
  }
  return false;
}

}  // namespace

cudaError_t check_device(int device) {
  int count = 0;
  const cudaError_t status = call(driver().cuDeviceGetCount, &count);
  if (status != cudaSuccess) return status;
  return device >= 0 && device < count && device < kMostDevices ? cudaSuccess
                                                                : cudaErrorInvalidDevice;
}

cudaError_t primary_context(int device, CUcontext* context) {
  const cudaError_t status = check_device(device);
  return status == cudaSuccess ? retain_primary(device, context) : status;
}

cudaError_t current_device(int* device) {
  CUcontext current = nullptr;
  if (call(driver().cuCtxGetCurrent, &current) == cudaSuccess && current != nullptr) {
    CUdevice handle = 0;
    const cudaError_t status = call(driver().cuCtxGetDevice, &handle);
    *device = handle;
    if (status == cudaSuccess) return status;
  }
  *device = thread_state().device;
  return cudaSuccess;
}

cudaError_t enter_context() {
  const cudaError_t status = open_driver();
  if (status != cudaSuccess) return status;
  ThreadState& state = thread_state();
  CUcontext current = nullptr;
  const unsigned seen = resets.load(std::memory_order_acquire);
  const bool reset_since = state.resets_seen != seen;
  if (call(driver().cuCtxGetCurrent, &current) == cudaSuccess && current != nullptr &&
      !(reset_since && is_retired(current))) {
    return cudaSuccess;
  }
  state.resets_seen = seen;
  CUcontext context = nullptr;
  const cudaError_t retained = primary_context(state.device, &context);
  return retained == cudaSuccess ? call(driver().cuCtxSetCurrent, context) : retained;
}

RUNTIME_WIPED(cudaGetDevice, (int* device), (device)) {
  return with_driver([&](const Driver&) {
    return device == nullptr ? cudaErrorInvalidValue : current_device(device);
  });
}

RUNTIME_API cudaSetDevice(int device) {
  return with_driver([&](const Driver& api) {
    CUcontext context = nullptr;
    const cudaError_t status = primary_context(device, &context);
    if (status != cudaSuccess) return status;
    thread_state().device = device;
    thread_state().resets_seen = resets.load();
    return call(api.cuCtxSetCurrent, context);
  });
}

RUNTIME_API cudaInitDevice(int device, unsigned, unsigned) {
  return with_driver([&](const Driver&) {
    CUcontext context = nullptr;
    return primary_context(device, &context);
  });
}

RUNTIME_API cudaDeviceReset() {
  return with_driver([&](const Driver& api) {
    int device = 0;
    cudaError_t status = current_device(&device);
    CUdevice handle = 0;
    if (status == cudaSuccess) status = call(api.cuDeviceGet, &handle, device);
    if (status != cudaSuccess) return status;
    const std::lock_guard lock(retain_lock);
    status = call(api.cuDevicePrimaryCtxReset, handle);
    retired[device].store(primary[device].exchange(nullptr));
    resets.fetch_add(1);
    return status;
  });
}

RUNTIME_API cudaDeviceSynchronize() {
  return with_context([](const Driver& api) { return call(api.cuCtxSynchronize); });
}

}  // namespace simgpu::runtime
