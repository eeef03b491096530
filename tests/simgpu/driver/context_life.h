// SPDX-License-Identifier: Apache-2.0
#pragma once
// How contexts begin and end. Driver's lock, which the end drops while it waits.

#include "tests/simgpu/driver/context.h"
#include "tests/simgpu/driver/lock.h"
#include "tests/simgpu/driver/options.h"

namespace simgpu {

// With `of`, a primary context: a green one.
Context* make_context(Lock& lock, CUdevice device, unsigned flags, Context* of = nullptr);
// Its work is waited for; its streams, events and memory are gone, and so are the green contexts
// made of it. Nothing of a context runs once it has ended, and who ended it knows.
void end_context(Lock& lock, Context* context);

// Null: it is not active.
Context* primary_context(CUdevice device);
unsigned& primary_flags(CUdevice device);
Context* retain_primary(Lock& lock, CUdevice device);
// False: it is not retained.
bool release_primary(Lock& lock, CUdevice device);
void reset_primary(Lock& lock, CUdevice device);

// The context behind a green one's handle, or null.
Context* find_green(CUgreenCtx green);
// Null unless it is a green one.
CUgreenCtx green_handle(Context* context);

inline bool is_device(CUdevice device) {
  return device >= 0 && device < options().devices;
}

}  // namespace simgpu
