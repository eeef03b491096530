// SPDX-License-Identifier: Apache-2.0
#pragma once
// Peer access (cuCtxEnablePeerAccess): what one context has allocated with cuMemAlloc, another
// device may use. Memory behind VMM mappings and in pools does not care: there each mapping (or
// pool) says which devices may use it. Driver's lock.

#include "tests/simgpu/driver/context.h"
#include "tests/simgpu/memory/mapping.h"

namespace simgpu::peers {

bool are_enabled(const Context& user, const Context& owner);
// The user's device gets, or loses, access to all that the owner has.
void enable(Context& user, const Context& owner);
void disable(Context& user, const Context& owner);
// A new allocation: for all who have enabled access to its context.
void let_in(Mapping& mapping);
// The context is gone.
void forget(const Context* context);

}  // namespace simgpu::peers
