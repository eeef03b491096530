// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a program gets when it asks for an entry of the driver: our wrapper, a trap, or the driver's
// own answer. Both doors that answer questions, dlsym and cuGetProcAddress, end here. Any thread;
// no allocation of ours.

#include <atomic>
#include <cstddef>

#include "interpose/doors/entries.h"

namespace offload {

// `found`: the driver's own function under the exported name `name`.
void* substitute_symbol(const char* name, NameInfo known, void* found);

// `found`: what cuGetProcAddress answered for this base name, version and kind of default stream.
void* substitute_base(const char* base, int version, bool per_thread, void* found);

// How many times wrappers were handed out, over all entries.
size_t wrappers_handed_out();

// --- The part that decides, over any driver.

struct DriverLookups {
  void* (*by_symbol)(const char* symbol);
  void* (*by_base)(const char* base, int version, bool per_thread);
};

struct Verdict {
  enum class Kind { kAsItIs, kWrapper, kTrap } kind = Kind::kAsItIs;
  Entry entry = Entry::kHooks_;  // kWrapper
};

// Names the returned pointer: which of the entries of a base name it is. The driver is asked for
// each of them, both ways, once.
class PointerNames {
 public:
  constexpr explicit PointerNames(const DriverLookups& lookups) : lookups_(lookups) {}
  Verdict judge(const char* base, int version, bool per_thread, void* found);

 private:
  struct Known {
    std::atomic<bool> asked{false};
    std::atomic<void*> by_symbol{nullptr};
    std::atomic<void*> by_base{nullptr};
  };
  const Known& known(Entry entry);

  const DriverLookups lookups_;
  Known known_[kHookCount];
};

}  // namespace offload
