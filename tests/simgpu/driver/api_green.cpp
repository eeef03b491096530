// SPDX-License-Identifier: Apache-2.0
// Green contexts: a device's multiprocessors in portions, and contexts over one primary context's
// memory that use a portion each. (Here kernels never share a device, so portions are only
// counted.) And events of whole contexts. Rules as in cuda.h, CUDA_GREEN_CONTEXTS.
#include <algorithm>
#include <cstring>

#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/context_life.h"
#include "tests/simgpu/driver/device_attributes.h"
#include "tests/simgpu/driver/objects.h"
#include "tests/simgpu/exec/capture.h"
#include "tests/simgpu/exec/engine.h"

using simgpu::Call;
using simgpu::Context;
using simgpu::engine;
using simgpu::Needs;

namespace {

// Partitions on devices of compute capability 8 (CUDA Programming Guide, "Green Contexts").
constexpr unsigned kLeastProcessors = 4;
constexpr unsigned kProcessorUnit = 2;
constexpr uint32_t kSignature = 0x53515253;

// What a resource remembers, in the bytes that are the driver's.
struct Mark {
  uint32_t signature;
  int32_t device;
  uint64_t split;  // which call made it; 0: it is a device's or a context's, and can be split
};

struct ResourceDesc {
  int device = 0;
  unsigned processors = 0;
};

simgpu::HandlePool<ResourceDesc>& descriptors() {
  static auto* pool = new simgpu::HandlePool<ResourceDesc>;
  return *pool;
}

unsigned all_processors(int device) {
  int count = 0;
  simgpu::device_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device, &count);
  return static_cast<unsigned>(count);
}

CUdevResource resource_of(int device, unsigned processors, uint64_t split) {
  CUdevResource resource = {};
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  resource.sm = {processors, kLeastProcessors, kProcessorUnit};
  const Mark mark{kSignature, device, split};
  std::memcpy(resource._internal_padding, &mark, sizeof mark);
  return resource;
}

bool read_mark(const CUdevResource& resource, Mark* mark) {
  std::memcpy(mark, resource._internal_padding, sizeof *mark);
  return resource.type == CU_DEV_RESOURCE_TYPE_SM && mark->signature == kSignature;
}

CUresult give_resource(const Context* context, int device, CUdevResource* resource,
                       CUdevResourceType type) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  const bool green = context != nullptr && context->primary_of != nullptr;
  *resource = resource_of(device, green ? context->processors : all_processors(device), 0);
  return CUDA_SUCCESS;
}

// The event stands for all that the context, and the green ones made of it, have been given.
CUresult record_all(Call& call, Context* context, CUevent event) {
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (context->sticky != CUDA_SUCCESS) return context->sticky;
  simgpu::EventHandle* entry = simgpu::event_handles().find(event);
  if (entry == nullptr || entry->context != &context->owner()) return CUDA_ERROR_INVALID_HANDLE;
  if (simgpu::captures::conflicts_with_synchronisation(context, 0))
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  simgpu::Stream* joins = engine().create_stream(call.lock, context, CU_STREAM_NON_BLOCKING, 0);
  for (const simgpu::Target& target : engine().all_work(context)) {
    if (target.number == 0 || target.stream == joins) continue;
    engine().add(call.lock, *joins,
                 std::make_unique<simgpu::WaitOp>(engine().add_point(call.lock, *target.stream)));
  }
  entry->record = engine().add_point(call.lock, *joins);
  entry->captured_in = 0;
  engine().retire_stream(call.lock, joins);
  return CUDA_SUCCESS;
}

CUresult wait_all(Call& call, Context* context, CUevent event) {
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (context->sticky != CUDA_SUCCESS) return context->sticky;
  const simgpu::EventHandle* entry = simgpu::event_handles().find(event);
  if (entry == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (auto* capture = simgpu::captures::find(entry->captured_in)) {
    simgpu::captures::invalidate(*capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (simgpu::captures::conflicts_with_synchronisation(context, 0))
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (entry->record != nullptr) engine().hold_back(call.lock, *context, entry->record);
  return CUDA_SUCCESS;
}

}  // namespace

SIMGPU_API cuDeviceGetDevResource(CUdevice device, CUdevResource* resource,
                                  CUdevResourceType type) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (!simgpu::is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  return give_resource(nullptr, device, resource, type);
}

SIMGPU_API cuCtxGetDevResource(CUcontext handle, CUdevResource* resource, CUdevResourceType type) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  const Context* context = simgpu::contexts().find(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return give_resource(context, context->device, resource, type);
}

SIMGPU_API cuGreenCtxGetDevResource(CUgreenCtx green, CUdevResource* resource,
                                    CUdevResourceType type) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  const Context* context = simgpu::find_green(green);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return give_resource(context, context->device, resource, type);
}

SIMGPU_API cuDevSmResourceSplitByCount(CUdevResource* result, unsigned int* groups,
                                       const CUdevResource* input, CUdevResource* remaining,
                                       unsigned int flags, unsigned int least) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (groups == nullptr || input == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // Clusters of the largest size: compute capability 9 and up.
  if ((flags & ~static_cast<unsigned>(CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Mark mark;
  if (!read_mark(*input, &mark)) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  if (mark.split != 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  const unsigned all = input->sm.smCount;
  if (least > all) return CUDA_ERROR_INVALID_VALUE;
  const bool loose = flags != 0;
  const unsigned unit = loose ? 1 : kProcessorUnit;
  const unsigned size = (std::max(least, loose ? 1 : kLeastProcessors) + unit - 1) / unit * unit;
  const unsigned possible = all / size;
  if (result == nullptr) {
    *groups = possible;
    return CUDA_SUCCESS;
  }
  static uint64_t last_split = 0;
  ++last_split;
  *groups = std::min(*groups, possible);
  for (unsigned i = 0; i < *groups; ++i) result[i] = resource_of(mark.device, size, last_split);
  if (remaining != nullptr) {
    const unsigned left = all - *groups * size;
    *remaining = left == 0 ? CUdevResource{} : resource_of(mark.device, left, last_split);
  }
  return CUDA_SUCCESS;
}

SIMGPU_API cuDevResourceGenerateDesc(CUdevResourceDesc* made, CUdevResource* resources,
                                     unsigned int count) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (made == nullptr || resources == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  Mark first;
  unsigned processors = 0;
  for (unsigned i = 0; i < count; ++i) {
    Mark mark;
    if (!read_mark(resources[i], &mark)) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (i == 0) first = mark;
    const bool together = i == 0 || (mark.split != 0 && mark.split == first.split);
    if (!together || mark.device != first.device) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    processors += resources[i].sm.smCount;
  }
  ResourceDesc* desc = descriptors().create();
  desc->device = first.device;
  desc->processors = processors;
  *made = reinterpret_cast<CUdevResourceDesc>(desc);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGreenCtxCreate(CUgreenCtx* green, CUdevResourceDesc handle, CUdevice device,
                            unsigned int flags) {
  Call call(Needs::kDriver, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  const ResourceDesc* desc = descriptors().find(handle);
  if (green == nullptr || desc == nullptr || flags != CU_GREEN_CTX_DEFAULT_STREAM) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!simgpu::is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (desc->device != device) return CUDA_ERROR_INVALID_VALUE;
  Context* primary = simgpu::retain_primary(call.lock, device);
  Context* made = simgpu::make_context(call.lock, device, primary->flags, primary);
  made->processors = desc->processors;
  made->sticky = primary->sticky;
  *green = simgpu::green_handle(made);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGreenCtxDestroy(CUgreenCtx green) {
  Call call(Needs::kDriver, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  Context* ending = simgpu::find_green(green);
  if (ending == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const int device = ending->device;
  simgpu::end_context(call.lock, ending);
  simgpu::release_primary(call.lock, device);
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* found = simgpu::find_green(green);
  if (found == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *context = reinterpret_cast<CUcontext>(found);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGreenCtxGetId(CUgreenCtx green, unsigned long long* id) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  const Context* found = green != nullptr ? simgpu::find_green(green) : call.context;
  if (found == nullptr || found->primary_of == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = found->id;
  return CUDA_SUCCESS;
}

SIMGPU_API cuGreenCtxRecordEvent(CUgreenCtx green, CUevent event) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  return record_all(call, simgpu::find_green(green), event);
}

SIMGPU_API cuGreenCtxWaitEvent(CUgreenCtx green, CUevent event) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  return wait_all(call, simgpu::find_green(green), event);
}

SIMGPU_API cuCtxRecordEvent(CUcontext context, CUevent event) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  return record_all(call, simgpu::contexts().find(context), event);
}

SIMGPU_API cuCtxWaitEvent(CUcontext context, CUevent event) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  return wait_all(call, simgpu::contexts().find(context), event);
}
