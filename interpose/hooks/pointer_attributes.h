// SPDX-License-Identifier: Apache-2.0
#pragma once
// The attributes of a pointer into our memory: those of memory from cuMemAlloc, whatever stands
// behind the address now.

#include "interpose/driver/device.h"
#include "interpose/engine/engine.h"

namespace offload {

enum class AttributeAnswer : uint8_t {
  kAnswered,
  kNone,       // such memory has no such attribute
  kAskDriver,  // one that we do not know
};
// `boolean_bytes`: as many as the driver writes for what its reference calls a boolean.
AttributeAnswer answer_attribute(const Device& device, const AllocationInfo& allocation,
                                 size_t boolean_bytes, CUpointer_attribute attribute,
                                 CUdeviceptr address, void* value);

// What cuPointerGetAttributes writes where there is nothing to tell.
void clear_attribute(CUpointer_attribute attribute, size_t boolean_bytes, void* value);

// CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, which the program may set for an allocation. Any thread.
void set_synchronous(const Device& device, const AllocationInfo& allocation, bool synchronous);

}  // namespace offload
