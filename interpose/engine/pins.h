// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pins: the list of buffers that a thread's current op names (hazard pointers). The owning thread publishes, whoever evicts
// scans. A pinned buffer is not claimed; a claim that came first is seen by the publishing thread, because
// both sides have a full fence between their store and their load.

#include <atomic>
#include <cstdint>

#include "interpose/engine/buffer.h"

namespace offload {

inline constexpr uint32_t kMaxPins = 8192;  // a 32 KiB parameter block has 4,096 words, and tables add to them

// One per host thread; allocated at its first op, never freed, reused by a later thread.
struct ThreadPins {
  std::atomic<uint32_t> count{0};
  std::atomic<bool> overflow{false};  // more names than fit: nothing may be claimed meanwhile
  std::atomic<bool> in_use{false};
  ThreadPins* next = nullptr;
  std::atomic<Buffer*> list[kMaxPins]{};

  // Owning thread. Names are collected first, then published by one fence in Engine::begin_op.
  void add(Buffer* buffer) {
    const uint32_t at = count.load(std::memory_order_relaxed);
    if (at > 0 && list[at - 1].load(std::memory_order_relaxed) == buffer) return;
    if (at == kMaxPins) {
      overflow.store(true, std::memory_order_relaxed);
      return;
    }
    list[at].store(buffer, std::memory_order_relaxed);
    count.store(at + 1, std::memory_order_release);
  }
  void clear() {
    if (count.load(std::memory_order_relaxed) != 0) count.store(0, std::memory_order_release);
    if (overflow.load(std::memory_order_relaxed)) overflow.store(false, std::memory_order_release);
  }
};

class PinRegistry {
 public:
  ThreadPins* acquire();              // for the calling thread
  static void give_back(ThreadPins*);  // at thread exit
  // Whether any thread but `except` pins `buffer` now. The caller has stored its claim and passed a full fence.
  bool pinned(const Buffer* buffer, const ThreadPins* except) const;
  bool any_pins(const ThreadPins* except) const;

 private:
  std::atomic<ThreadPins*> first_{nullptr};
};

}  // namespace offload
