// SPDX-License-Identifier: Apache-2.0
// Contexts: primary ones, created ones, and each thread's stack.
#include <algorithm>

#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/objects.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/driver/peers.h"
#include "tests/simgpu/driver/thread_state.h"
#include "tests/simgpu/exec/capture.h"
#include "tests/simgpu/exec/engine.h"
#include "tests/simgpu/exec/graph_exec.h"
#include "tests/simgpu/memory/address_space.h"
#include "tests/simgpu/memory/heap.h"
#include "tests/simgpu/memory/host_blocks.h"
#include "tests/simgpu/memory/pool.h"

using simgpu::Call;
using simgpu::Context;
using simgpu::contexts;
using simgpu::engine;
using simgpu::Needs;
using simgpu::options;
using simgpu::thread_state;

namespace {

constexpr unsigned kContextVersion = 3020;
constexpr int kLowestPriority = 0;
constexpr int kHighestPriority = -5;

Context*& primary(CUdevice device) {
  static Context* all[simgpu::kMaxDevices] = {};
  return all[device];
}

unsigned& primary_flags(CUdevice device) {
  static unsigned all[simgpu::kMaxDevices] = {};
  return all[device];
}

bool is_device(CUdevice device) {
  return device >= 0 && device < options().devices;
}

CUcontext handle(Context* context) {
  return reinterpret_cast<CUcontext>(context);
}

Context* make_context(Call& call, CUdevice device, unsigned flags) {
  static uint64_t last_id = 0;
  Context* context = contexts().create();
  context->device = device;
  context->flags = flags;
  context->id = ++last_id;
  context->limits[CU_LIMIT_STACK_SIZE] = 1024;
  context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 8 << 20;
  context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
  context->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
  context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
  simgpu::Stream* legacy = engine().create_stream(call.lock, context, CU_STREAM_DEFAULT, 0);
  legacy->legacy = true;
  context->legacy = legacy;
  return context;
}

// Ends a context: its work is waited for, its streams, events and memory are gone.
// Nothing of a context runs once it has ended, and who ended it knows.
void end_context(Call& call, Context* context) {
  engine().synchronize(call.lock, engine().all_work(context), "the end of a context");
  simgpu::stream_handles().for_each([&](simgpu::StreamHandle& entry) {
    if (entry.stream->context != context) return;
    simgpu::captures::leave(*entry.stream);
    engine().retire_stream(call.lock, entry.stream);
    simgpu::stream_handles().destroy(&entry);
  });
  simgpu::graph_execs::leave_context(call.lock, context);
  simgpu::event_handles().for_each([&](simgpu::EventHandle& entry) {
    if (entry.context == context) simgpu::event_handles().destroy(&entry);
  });
  for (simgpu::Mapping* mapping : simgpu::address_space().owned_by(context)) {
    if (mapping->kind == simgpu::MemoryKind::kHeap) {
      simgpu::heap::free(mapping);
    } else {
      simgpu::host_blocks::free_any(mapping);
    }
  }
  simgpu::peers::forget(context);
  // The default stream is left behind: points in it may still be referred to.
  contexts().destroy(context);
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
  Context*& mine = primary(device);
  if (mine == nullptr) {
    mine = make_context(call, device, primary_flags(device));
    mine->primary = true;
  }
  ++mine->retained;
  *context = handle(mine);
  return CUDA_SUCCESS;
}

SIMGPU_API cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  Call call(Needs::kDriver, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  Context*& mine = primary(device);
  if (mine == nullptr || mine->retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--mine->retained > 0) return CUDA_SUCCESS;
  Context* ending = mine;
  mine = nullptr;
  end_context(call, ending);
  return CUDA_SUCCESS;
}

SIMGPU_API cuDevicePrimaryCtxReset_v2(CUdevice device) {
  Call call(Needs::kDriver, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  Context* ending = primary(device);
  primary(device) = nullptr;
  if (ending != nullptr) end_context(call, ending);
  return CUDA_SUCCESS;
}

SIMGPU_API cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if ((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0) return CUDA_ERROR_INVALID_VALUE;
  primary_flags(device) = flags;
  if (primary(device) != nullptr) primary(device)->flags = flags;
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
  *active = primary(device) != nullptr ? 1 : 0;
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
  Context* made = make_context(call, device, flags);
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
  if (ending == nullptr || ending->primary) return CUDA_ERROR_INVALID_CONTEXT;
  auto& stack = thread_state().contexts;
  if (!stack.empty() && stack.back() == ending) stack.pop_back();
  end_context(call, ending);
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
