// SPDX-License-Identifier: Apache-2.0
// Several devices: what one may see of another's memory.
#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/objects.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/driver/peers.h"

using simgpu::Call;
using simgpu::Context;
using simgpu::contexts;
using simgpu::Needs;

namespace {

bool is_device(CUdevice device) {
  return device >= 0 && device < simgpu::options().devices;
}

}  // namespace

SIMGPU_API cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(device) || !is_device(peer)) return CUDA_ERROR_INVALID_DEVICE;
  *can = device != peer ? 1 : 0;
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice from,
                                   CUdevice to) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (!is_device(from) || !is_device(to)) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr || from == to) return CUDA_ERROR_INVALID_VALUE;
  *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ? 1 : 0;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  const Context* owner = contexts().find(peer);
  if (owner == nullptr || &owner->owner() == &call.context->owner())
    return CUDA_ERROR_INVALID_CONTEXT;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (owner->device == call.context->device) return CUDA_ERROR_INVALID_DEVICE;
  if (simgpu::peers::are_enabled(call.context->owner(), owner->owner())) {
    return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  }
  simgpu::peers::enable(call.context->owner(), owner->owner());
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxDisablePeerAccess(CUcontext peer) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  const Context* owner = contexts().find(peer);
  if (owner == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!simgpu::peers::are_enabled(call.context->owner(), owner->owner())) {
    return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  }
  simgpu::peers::disable(call.context->owner(), owner->owner());
  return CUDA_SUCCESS;
}
