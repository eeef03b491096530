// SPDX-License-Identifier: Apache-2.0
// Stream-ordered allocation and memory pools.
#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/graph_parameters.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/exec/capture.h"
#include "tests/simgpu/exec/engine.h"
#include "tests/simgpu/exec/pool_op.h"
#include "tests/simgpu/memory/address_space.h"
#include "tests/simgpu/memory/pool.h"

using simgpu::Call;
using simgpu::DefaultStream;
using simgpu::Needs;
using simgpu::options;
using simgpu::Pool;
namespace pools = simgpu::pools;

namespace {

bool is_device(CUdevice device) {
  return device >= 0 && device < options().devices;
}
CUmemoryPool handle(Pool* pool) {
  return reinterpret_cast<CUmemoryPool>(pool);
}

CUresult capture_allocation(simgpu::Stream& stream, const Pool& pool, size_t bytes,
                            CUdeviceptr* address) {
  CUDA_MEM_ALLOC_NODE_PARAMS what = {};
  what.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  what.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, pool.device};
  what.bytesize = bytes;
  simgpu::NodeParameters node;
  CUresult error = simgpu::read_allocation(&what, &node);
  if (error == CUDA_SUCCESS) error = simgpu::captures::add(stream, std::move(node));
  if (error == CUDA_SUCCESS) *address = what.dptr;
  return error;
}

// What a launched graph has allocated and not freed.
CUresult free_graph_memory(Call& call, simgpu::Stream& stream, CUdeviceptr address) {
  const auto memory = simgpu::graph_memory::find(address);
  if (memory == nullptr || !memory->outstanding) return CUDA_ERROR_INVALID_VALUE;
  simgpu::graph_memory::set_outstanding(*memory, false);
  auto freed = std::make_shared<simgpu::Record>();
  memory->last_use = freed;
  simgpu::engine().submit(call.lock, stream, std::make_unique<simgpu::FreeOp>(address, freed));
  return CUDA_SUCCESS;
}

CUresult allocate(Call& call, CUdeviceptr* address, size_t bytes, Pool* pool,
                  CUstream stream_handle, DefaultStream preset) {
  simgpu::Stream* stream = call.stream(stream_handle, preset);
  if (stream == nullptr) {
    return stream_handle == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
  }
  if (CUresult error = Call::stream_error(*stream); error != CUDA_SUCCESS) return error;
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (pool == nullptr) pool = pools::current(stream->context->device);
  if (stream->capture != nullptr) return capture_allocation(*stream, *pool, bytes, address);
  return pools::allocate(call.lock, pool, bytes, *stream, address);
}

template <DefaultStream preset>
CUresult allocate_async(CUdeviceptr* address, size_t bytes, CUstream stream) {
  Call call(Needs::kDriver);  // an explicit stream needs no current context
  if (call.error != CUDA_SUCCESS) return call.error;
  return allocate(call, address, bytes, nullptr, stream, preset);
}

template <DefaultStream preset>
CUresult allocate_from_pool(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                            CUstream stream) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  Pool* found = pools::find(pool);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return allocate(call, address, bytes, found, stream, preset);
}

template <DefaultStream preset>
CUresult free_async(CUdeviceptr address, CUstream stream_handle) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  simgpu::Stream* stream = call.stream(stream_handle, preset);
  if (stream == nullptr) {
    return stream_handle == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
  }
  if (CUresult error = Call::stream_error(*stream); error != CUDA_SUCCESS) return error;
  if (address == 0) return CUDA_SUCCESS;
  if (stream->capture != nullptr) {
    simgpu::NodeParameters node;
    const CUresult error = simgpu::read_free(address, *stream->capture->graph, &node);
    return error == CUDA_SUCCESS ? simgpu::captures::add(*stream, std::move(node)) : error;
  }
  if (simgpu::graph_memory::find(address) != nullptr) {
    return free_graph_memory(call, *stream, address);
  }
  simgpu::Mapping* mapping = simgpu::address_space().find(address);
  if (mapping == nullptr || mapping->begin != address) return CUDA_ERROR_INVALID_VALUE;
  if (mapping->kind == simgpu::MemoryKind::kPool) {
    return pools::free(call.lock, mapping, *stream);
  }
  if (mapping->kind != simgpu::MemoryKind::kHeap) return CUDA_ERROR_INVALID_VALUE;
  return pools::free_heap(call.lock, mapping, *stream);
}

}  // namespace

SIMGPU_STREAM_API(cuMemAllocAsync, _ptsz, allocate_async, (CUdeviceptr * p, size_t n, CUstream s),
                  (p, n, s))
SIMGPU_STREAM_API(cuMemAllocFromPoolAsync, _ptsz, allocate_from_pool,
                  (CUdeviceptr * p, size_t n, CUmemoryPool pool, CUstream s), (p, n, pool, s))
SIMGPU_STREAM_API(cuMemFreeAsync, _ptsz, free_async, (CUdeviceptr p, CUstream s), (p, s))

SIMGPU_API cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *pool = handle(pools::default_pool(device));
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *pool = handle(pools::current(device));
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  Pool* found = pools::find(pool);
  if (found == nullptr || found->device != device) return CUDA_ERROR_INVALID_VALUE;
  pools::current(device) = found;
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  Call call(Needs::kDriver, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (pool == nullptr || properties == nullptr ||
      properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  if (!is_device(properties->location.id)) return CUDA_ERROR_INVALID_DEVICE;
  if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
  *pool = handle(pools::create(*properties));
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemPoolDestroy(CUmemoryPool pool) {
  Call call(Needs::kDriver, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  Pool* found = pools::find(pool);
  if (found == nullptr || found->is_default) return CUDA_ERROR_INVALID_VALUE;
  pools::destroy(call.lock, found);
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  Call call(Needs::kDriver, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  Pool* found = pools::find(pool);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  pools::trim(found, keep);
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  const Pool* found = pools::find(pool);
  if (found == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* number = static_cast<int*>(value);
  auto* bytes = static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      *number = found->reuse_follow_events;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      *number = found->reuse_opportunistic;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *number = found->reuse_internal_dependencies;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      *bytes = found->release_threshold;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      *bytes = found->reserved;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      *bytes = found->reserved_high;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      *bytes = found->used;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      *bytes = found->used_high;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

SIMGPU_API cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  Pool* found = pools::find(pool);
  if (found == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const int number = *static_cast<const int*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      found->reuse_follow_events = number;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      found->reuse_opportunistic = number;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      found->reuse_internal_dependencies = number;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      found->release_threshold = *static_cast<const cuuint64_t*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      // A high mark can only be set to zero, and starts again from what is there.
      if (*static_cast<const cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
        found->used_high = found->used;
      } else {
        found->reserved_high = found->reserved;
      }
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

SIMGPU_API cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* descriptors, size_t count) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  Pool* found = pools::find(pool);
  if (found == nullptr || (descriptors == nullptr && count != 0)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const CUmemLocation& location = descriptors[i].location;
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(location.id)) return CUDA_ERROR_INVALID_DEVICE;
    // The pool's own device always has access.
    if (location.id == found->device &&
        descriptors[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  for (size_t i = 0; i < count; ++i) {
    pools::set_access(found, descriptors[i].location.id, descriptors[i].flags);
  }
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool,
                              CUmemLocation* location) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  const Pool* found = pools::find(pool);
  if (found == nullptr || flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(location->id)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = found->access[location->id];
  return CUDA_SUCCESS;
}

namespace {

// Of the three kinds of pool only a device's pinned memory exists.
CUresult check_location(const CUmemLocation* location, CUmemAllocationType type) {
  if (location == nullptr || type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  return is_device(location->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace

SIMGPU_API cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location,
                                  CUmemAllocationType type) {
  const simgpu::ApiName api_name(__func__);
  const CUresult error = check_location(location, type);
  return error == CUDA_SUCCESS ? cuDeviceGetDefaultMemPool(pool, location->id) : error;
}
SIMGPU_API cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  const simgpu::ApiName api_name(__func__);
  const CUresult error = check_location(location, type);
  return error == CUDA_SUCCESS ? cuDeviceGetMemPool(pool, location->id) : error;
}
SIMGPU_API cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  const simgpu::ApiName api_name(__func__);
  const CUresult error = check_location(location, type);
  return error == CUDA_SUCCESS ? cuDeviceSetMemPool(location->id, pool) : error;
}
