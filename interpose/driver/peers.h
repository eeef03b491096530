// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which devices were given access to which context's memory: also before there is a session, so
// that its port can catch up.

#include "interpose/driver/cuda_api.h"

namespace offload {

void note_peer(CUcontext memory_of, CUdevice device, bool may_access);
// Calls `tell` for each device that may access memory of this context.
void for_each_peer(CUcontext memory_of, void (*tell)(CUdevice device, void* to), void* to);

}  // namespace offload
