// SPDX-License-Identifier: Apache-2.0
#pragma once
// Frameworks pass structs by value with words that nobody wrote; those hold whatever the stack held
// before, pointers to buffers among it, which then count as named. What the stack holds depends on
// every library that ran on it. With SIMGPU_WIPE_STACK=1 the libraries here therefore leave it
// empty: the outermost frame of each frequent call zeroes the dead stack below it before it
// returns.

#include <cstdlib>
#include <cstring>

namespace simgpu {

inline bool wipes_stack() {
  static const bool yes = [] {
    const char* value = std::getenv("SIMGPU_WIPE_STACK");
    return value != nullptr && std::strcmp(value, "1") == 0;
  }();
  return yes;
}

// Never inlined, so that what it zeroes lies below the caller's frame.
__attribute__((noinline)) inline void zero_below() {
  constexpr size_t kBytes = 16 << 10;
  char dead[kBytes];
  std::memset(dead, 0, sizeof(dead));
  asm volatile("" : : "r"(dead) : "memory");
}

inline void wipe_dead_stack() {
  if (wipes_stack()) zero_below();
}

}  // namespace simgpu
