// SPDX-License-Identifier: Apache-2.0
// Each device's default pool as the program sees it: its statistics are ours (used is what lives,
// reserved is what is mapped, and never less than that, as programs take one from the other), plus
// what the driver's own pool holds for those whom it serves.
// Where it serves all (PyTorch with its own cache), the numbers are its own.

#include <algorithm>

#include "interpose/hooks/define.h"
#include "interpose/hooks/operation.h"

namespace offload {
namespace {

Session* session_of_pool(CUmemoryPool pool) {
  return find_session(
      [pool](const Session& each) { return !each.native && each.is_default_pool(pool); });
}

// Null: not a number of ours.
std::atomic<uint64_t>* high_mark(Session& active, CUmemPool_attribute attribute) {
  if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) return &active.pool_used_high;
  if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) return &active.pool_reserved_high;
  return nullptr;
}

uint64_t level(Session& active, CUmemPool_attribute attribute) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return active.engine.live_bytes();
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return std::max(active.engine.mapped_bytes(), active.engine.live_bytes());
    default:
      return 0;
  }
}

void current_pool_is(CUdevice device, CUmemoryPool pool) {
  if (Session* active = session_on(device); active != nullptr) {
    active->default_pool_is_current.store(active->is_default_pool(pool), std::memory_order_relaxed);
  }
}

}  // namespace

template <Entry E>
CUresult device_set_mem_pool(CUdevice device, CUmemoryPool pool) {
  const CUresult result = real<E>()(device, pool);
  if (result == CUDA_SUCCESS) current_pool_is(device, pool);
  return result;
}

template <Entry E>
CUresult mem_set_mem_pool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  const CUresult result = real<E>()(location, type, pool);
  if (result == CUDA_SUCCESS && location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
      type == CU_MEM_ALLOCATION_TYPE_PINNED) {
    current_pool_is(location->id, pool);
  }
  return result;
}

template <Entry E>
CUresult mem_pool_get_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  const CUresult result = real<E>()(pool, attribute, value);
  Session* active = session_of_pool(pool);
  if (active == nullptr || result != CUDA_SUCCESS) return result;
  auto* number = static_cast<cuuint64_t*>(value);
  if (const std::atomic<uint64_t>* mark = high_mark(*active, attribute)) {
    *number += std::max(mark->load(std::memory_order_relaxed), level(*active, attribute));
  } else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ||
             attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) {
    *number += level(*active, attribute);
  }
  return result;
}

// The marks can only be reset, with 0; the driver checks that.
template <Entry E>
CUresult mem_pool_set_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  const CUresult result = real<E>()(pool, attribute, value);
  Session* active = session_of_pool(pool);
  if (active == nullptr || result != CUDA_SUCCESS) return result;
  if (std::atomic<uint64_t>* mark = high_mark(*active, attribute)) {
    mark->store(level(*active, attribute), std::memory_order_relaxed);
  }
  return result;
}

template <Entry E>
CUresult mem_pool_trim_to(CUmemoryPool pool, size_t keep_bytes) {
  if (Session* active = session_of_pool(pool)) active->engine.trim(keep_bytes);
  return real<E>()(pool, keep_bytes);
}

}  // namespace offload

#define FAMILY_pools DEFINE_HOOK
#include "interpose/hooks/families.h"
