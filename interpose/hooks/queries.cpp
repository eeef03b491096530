// SPDX-License-Identifier: Apache-2.0
// What the program asks about our memory is answered by us: the driver would tell of pieces, of
// host memory, or of nothing.

#include <algorithm>
#include <atomic>
#include <cstring>

#include "interpose/driver/own_call.h"
#include "interpose/hooks/define.h"
#include "interpose/hooks/operation.h"
#include "interpose/hooks/pointer_attributes.h"
#include "interpose/life/start.h"

namespace offload {
namespace {

// Before the first allocation on a device the limit is only an option.
void limit_info(size_t* free, size_t* total) {
  if (!driver_in_use()) return;
  *total = std::min<size_t>(*total, options().gpu_limit.of(*total));
  *free = std::min(*free, *total);
}

// Whether the current device has had no session so far.
bool not_used_yet() {
  CUdevice device = -1;
  if (real<Entry::cuCtxGetDevice>()(&device) != CUDA_SUCCESS) return false;
  for (const Session* known = last_session(); known != nullptr; known = known->earlier) {
    if (known->device.device == device) return false;
  }
  return true;
}

// The driver may have less left than our limit allows.
void session_info(Session& active, size_t driver_free, size_t* free, size_t* total) {
  uint64_t ours_free = 0;
  uint64_t ours_total = 0;
  active.engine.memory_info(&ours_free, &ours_total);
  const uint64_t mapped = active.engine.mapped_bytes();
  const uint64_t unmapped =
      active.config.limit_bytes > mapped ? active.config.limit_bytes - mapped : 0;
  if (unmapped > driver_free && ours_free > unmapped - driver_free)
    ours_free -= unmapped - driver_free;
  *free = ours_free;
  *total = ours_total;
}

// Its reference says "boolean", and does not say how many bytes of one it writes: as many change.
// The question has an answer for any address.
size_t boolean_bytes() {
  static constinit std::atomic<size_t> known{0};
  size_t bytes = known.load(std::memory_order_relaxed);
  if (bytes != 0) return bytes;
  unsigned char value[8];
  std::memset(value, 0xAA, sizeof(value));
  const RelaxedCapture relaxed(captures_watched());
  if (real<Entry::cuPointerGetAttribute>()(value, CU_POINTER_ATTRIBUTE_MAPPED,
                                           reinterpret_cast<CUdeviceptr>(value)) != CUDA_SUCCESS)
    return sizeof(bool);
  while (bytes < sizeof(value) && value[bytes] != 0xAA) ++bytes;
  bytes = std::max(bytes, sizeof(bool));
  known.store(bytes, std::memory_order_relaxed);
  return bytes;
}

}  // namespace

template <Entry E>
CUresult mem_get_info(size_t* free, size_t* total) {
  const CUresult result = real<E>()(free, total);
  if (result != CUDA_SUCCESS || free == nullptr || total == nullptr || this_thread.inside)
    return result;
  if (Session* here = session_in(current_context()); here == nullptr) {
    if (not_used_yet()) limit_info(free, total);
  } else if (here->native) {
    *total = std::min<size_t>(*total, here->native_memory.limit_bytes());
    *free = std::min<size_t>(*free, here->native_memory.left_bytes());
  } else {
    session_info(*here, *free, free, total);
  }
  return result;
}

template <Entry E>
CUresult mem_get_address_range(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  Session* owner = owner_of(address);
  if (owner == nullptr) return real<E>()(base, bytes, address);
  AllocationInfo allocation;
  if (!owner->engine.describe(address, &allocation)) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = allocation.base;
  if (bytes != nullptr) *bytes = allocation.bytes;
  return CUDA_SUCCESS;
}

template <Entry E>
CUresult pointer_get_attribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  Session* owner = owner_of(address);
  if (owner == nullptr || value == nullptr) return real<E>()(value, attribute, address);
  AllocationInfo allocation;
  if (!owner->engine.describe(address, &allocation)) return CUDA_ERROR_INVALID_VALUE;
  const AttributeAnswer answer =
      answer_attribute(owner->device, allocation, boolean_bytes(), attribute, address, value);
  return answer == AttributeAnswer::kAskDriver ? real<E>()(value, attribute, address)
         : answer == AttributeAnswer::kNone    ? CUDA_ERROR_INVALID_VALUE
                                               : CUDA_SUCCESS;
}

// This form never fails for an address: what does not apply is null.
template <Entry E>
CUresult pointer_get_attributes(unsigned count, CUpointer_attribute* attributes, void** values,
                                CUdeviceptr address) {
  Session* owner = owner_of(address);
  if (owner == nullptr || attributes == nullptr || values == nullptr || count == 0)
    return real<E>()(count, attributes, values, address);
  AllocationInfo allocation;
  const bool live = owner->engine.describe(address, &allocation);
  for (unsigned i = 0; i < count; ++i) {
    const AttributeAnswer answer =
        live ? answer_attribute(owner->device, allocation, boolean_bytes(), attributes[i], address,
                                values[i])
             : AttributeAnswer::kNone;
    if (answer == AttributeAnswer::kAskDriver) return real<E>()(count, attributes, values, address);
    if (answer == AttributeAnswer::kNone)
      clear_attribute(attributes[i], boolean_bytes(), values[i]);
  }
  return CUDA_SUCCESS;
}

}  // namespace offload

#define FAMILY_queries DEFINE_HOOK
#include "interpose/hooks/families.h"
