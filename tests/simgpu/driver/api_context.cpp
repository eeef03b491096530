// SPDX-License-Identifier: Apache-2.0
// Contexts: primary ones, created ones, and each thread's stack.
#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/context_life.h"
#include "tests/simgpu/driver/objects.h"
#include "tests/simgpu/driver/thread_state.h"
#include "tests/simgpu/exec/capture.h"
#include "tests/simgpu/exec/engine.h"
#include "tests/simgpu/memory/pool.h"

using simgpu::Call;
using simgpu::Context;
using simgpu::contexts;
using simgpu::engine;
using simgpu::is_device;
using simgpu::Needs;
using simgpu::primary_flags;
using simgpu::thread_state;

namespace {

constexpr unsigned kContextVersion = 3020;
constexpr int kLowestPriority = 0;
constexpr int kHighestPriority = -5;

CUcontext handle(Context* context) {
  return reinterpret_cast<CUcontext>(context);
}

CUresult synchronize(Call& call, Context* context) {
  if (simgpu::captures::conflicts_with_synchronisation(context, 0)) {
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (CUresult error = Call::unsafe_error(); error != CUDA_SUCCESS) return error;
  engine().synchronize(call.lock, engine().all_work(context), "cuCtxSynchronize");
  simgpu::pools::after_synchronisation();
  return context->sticky;
}

}  // namespace

SIMGPU_API cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *context = handle(simgpu::retain_primary(call.lock, device));
  return CUDA_SUCCESS;
}

SIMGPU_API cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  Call call(Needs::kDriver, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  return simgpu::release_primary(call.lock, device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

SIMGPU_API cuDevicePrimaryCtxReset_v2(CUdevice device) {
  Call call(Needs::kDriver, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  simgpu::reset_primary(call.lock, device);
  return CUDA_SUCCESS;
}

SIMGPU_API cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if ((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0) return CUDA_ERROR_INVALID_VALUE;
  primary_flags(device) = flags;
  Context* active = simgpu::primary_context(device);
  if (active != nullptr) active->flags = flags;
  return CUDA_SUCCESS;
}

SIMGPU_API cuDevicePrimaryCtxRelease(CUdevice device) {
  const simgpu::ApiName api_name(__func__);
  return cuDevicePrimaryCtxRelease_v2(device);
}
SIMGPU_API cuDevicePrimaryCtxReset(CUdevice device) {
  const simgpu::ApiName api_name(__func__);
  return cuDevicePrimaryCtxReset_v2(device);
}
SIMGPU_API cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
  const simgpu::ApiName api_name(__func__);
  return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

SIMGPU_API cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = primary_flags(device);
  *active = simgpu::primary_context(device) != nullptr ? 1 : 0;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned int flags,
                          CUdevice device) {
  Call call(Needs::kDriver, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (parameters != nullptr &&
      (parameters->numExecAffinityParams != 0 || parameters->cigParams != nullptr)) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  Context* made = simgpu::make_context(call.lock, device, flags);
  thread_state().contexts.push_back(made);
  *context = handle(made);
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  const simgpu::ApiName api_name(__func__);
  return cuCtxCreate_v4(context, nullptr, flags, device);
}

SIMGPU_API cuCtxDestroy_v2(CUcontext context) {
  Call call(Needs::kDriver, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  Context* ending = contexts().find(context);
  if (ending == nullptr || ending->primary || ending->primary_of != nullptr)
    return CUDA_ERROR_INVALID_CONTEXT;
  auto& stack = thread_state().contexts;
  if (!stack.empty() && stack.back() == ending) stack.pop_back();
  simgpu::end_context(call.lock, ending);
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxDestroy(CUcontext context) {
  const simgpu::ApiName api_name(__func__);
  return cuCtxDestroy_v2(context);
}

SIMGPU_API cuCtxPushCurrent_v2(CUcontext context) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  Context* found = contexts().find(context);
  if (found == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  thread_state().contexts.push_back(found);
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxPopCurrent_v2(CUcontext* context) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  auto& stack = thread_state().contexts;
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = handle(stack.back());
  stack.pop_back();
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxPushCurrent(CUcontext context) {
  const simgpu::ApiName api_name(__func__);
  return cuCtxPushCurrent_v2(context);
}
SIMGPU_API cuCtxPopCurrent(CUcontext* context) {
  const simgpu::ApiName api_name(__func__);
  return cuCtxPopCurrent_v2(context);
}

SIMGPU_API cuCtxSetCurrent(CUcontext context) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  auto& stack = thread_state().contexts;
  if (context == nullptr) {
    if (!stack.empty()) stack.pop_back();
    return CUDA_SUCCESS;
  }
  Context* found = contexts().find(context);
  if (found == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (stack.empty()) {
    stack.push_back(found);
  } else {
    stack.back() = found;
  }
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetCurrent(CUcontext* context) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = handle(call.context);
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetDevice(CUdevice* device) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = call.context->device;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  Context* found = context != nullptr ? contexts().find(context) : call.context;
  if (found == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = found->device;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetFlags(unsigned int* flags) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = call.context->flags;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxSetFlags(unsigned int flags) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  call.context->flags = flags;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetId(CUcontext context, unsigned long long* id) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  Context* found = context != nullptr ? contexts().find(context) : call.context;
  if (found == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = found->id;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetApiVersion(CUcontext context, unsigned int* version) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (context != nullptr && contexts().find(context) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = kContextVersion;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxSynchronize() {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  return synchronize(call, call.context);
}

SIMGPU_API cuCtxSynchronize_v2(CUcontext context) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  Context* found = context != nullptr ? contexts().find(context) : call.context;
  if (found == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (found->sticky != CUDA_SUCCESS) return found->sticky;
  return synchronize(call, found);
}

SIMGPU_API cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (least != nullptr) *least = kLowestPriority;
  if (greatest != nullptr) *greatest = kHighestPriority;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetLimit(size_t* value, CUlimit limit) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *value = call.context->limits[limit];
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxSetLimit(CUlimit limit, size_t value) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  call.context->limits[limit] = value;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetCacheConfig(CUfunc_cache* config) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = call.context->cache_config;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxSetCacheConfig(CUfunc_cache config) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  call.context->cache_config = config;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxSetSharedMemConfig(CUsharedconfig) {
  return Call(Needs::kContext).error;
}
SIMGPU_API cuCtxResetPersistingL2Cache() {
  return Call(Needs::kContext).error;
}
