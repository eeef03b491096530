// SPDX-License-Identifier: Apache-2.0
#pragma once
// Entries of the driver whose effect on memory is not known are handed out behind a trap: code that
// keeps every argument, reports the first call, and jumps on to the real entry. Programs fetch
// hundreds of entries that they never call. Any thread; allocates nothing.

#include <cstddef>

namespace offload {

inline constexpr size_t kTrapPoolSize = 1024;  // .rept in exports.S

// Called when a trapped entry is called, before it goes on, on the calling thread, until it answers
// true for that entry.
using TrapListener = bool (*)(const char* entry);
void set_trap_listener(TrapListener listener);

// A trap before `target`; the same one for the same target. `name` is copied. Null if there are no
// more.
void* trap_before(void* target, const char* name);

// How many trapped entries have been called and answered for.
size_t traps_hit();

}  // namespace offload
