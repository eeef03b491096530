// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which devices were given access to memory: that of a context (cuCtxEnablePeerAccess) or that of a
// pool (cuMemPoolSetAccess). Also before there is a session, so that its port can catch up.

#include "interpose/driver/cuda_api.h"

namespace offload {

// `memory_of`: the handle of the context or the pool; null is nobody's.
void note_peer(const void* memory_of, CUdevice device, bool may_access);
bool is_peer(const void* memory_of, CUdevice device);
// Calls `tell` for each device that may access that memory.
void for_each_peer(const void* memory_of, void (*tell)(CUdevice device, void* to), void* to);

}  // namespace offload
