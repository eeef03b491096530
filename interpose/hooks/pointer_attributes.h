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
AttributeAnswer answer_attribute(const Device& device, const AllocationInfo& allocation,
                                 CUpointer_attribute attribute, CUdeviceptr address, void* value);

// What cuPointerGetAttributes writes where there is nothing to tell.
void clear_attribute(CUpointer_attribute attribute, void* value);

}  // namespace offload
