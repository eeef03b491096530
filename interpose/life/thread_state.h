// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the hooks keep per host thread: which context is current, and for each device its pins and
// the streams it used last. Thread-local and small; constant-initialised, so that it is usable from
// the first instruction to the last.

#include <cstddef>
#include <cstdint>

#include "interpose/engine/fence.h"

namespace offload {

struct Session;
struct ThreadPins;

// Devices beyond are not managed.
inline constexpr uint32_t kMostDevices = 16;

struct ThreadState {
  struct CachedStream {
    uintptr_t key = 0;  // Session::key_of(); never 0
    StreamIndex index = 0;
  };
  static constexpr size_t kCachedStreams = 8;
  struct OfDevice {
    Session* owner = nullptr;  // the session that the rest belongs to
    ThreadPins* pins = nullptr;
    uint64_t stream_generation = 0;  // of `streams`; 0: none are valid
    CachedStream streams[kCachedStreams];
  };

  bool inside = false;          // in our own call of the driver: hooks forward
  bool relaxed = false;         // its capture mode is relaxed, by us
  bool safe_calls_only = true;  // its capture mode, as the program set it, is the global one

  bool context_known = false;  // `context` is what is current on this thread
  void* context = nullptr;
  uint32_t allocations = 0;
  OfDevice devices[kMostDevices];  // by ordinal
};

__attribute__((tls_model("initial-exec"))) extern constinit thread_local ThreadState this_thread;

// Any stream may have ended, and its handle may come back as another: every thread looks its
// streams up again.
void forget_streams();
uint64_t stream_generation();
// The current context of this thread changed.
inline void context_changed() {
  this_thread.context_known = false;
}

// Hands the thread's pins back, of all devices, when the thread ends.
void return_pins_at_thread_exit();

}  // namespace offload
