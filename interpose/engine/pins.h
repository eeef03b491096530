// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pins: the list of buffers that a thread's current op names (hazard pointers). The owning thread
// publishes, whoever evicts scans. A pinned buffer is not claimed; a claim that came first is seen
// by the publishing thread, because both sides store and load in one sequentially consistent order.

#include <atomic>
#include <cstdint>

#include "interpose/engine/buffer.h"
#include "interpose/life/heap.h"

namespace offload {

#ifdef OFFLOAD_DROPPABLE_CLAUSES
inline constexpr uint32_t kMaxPins = 4;  // so that small programs name more than that
#else
inline constexpr uint32_t kMaxPins =
    8192;  // a 32 KiB parameter block has 4,096 words, and tables add to them
#endif

// One per host thread; allocated at its first op, never freed, reused by a later thread.
struct ThreadPins {
  std::atomic<uint32_t> count{0};     // published
  std::atomic<bool> overflow{false};  // more names than fit: nothing may be claimed meanwhile
  std::atomic<bool> in_use{false};
  ThreadPins* next = nullptr;
  uint32_t collected = 0;  // owning thread only
  uint32_t looks = 0;      // owning thread only: waits of the present request
  uint32_t turns = 0;
  bool went_first = false;        // owning thread only: others stood aside for it
  bool in_place = false;          // owning thread only: the present op uses buffers in host memory
  std::atomic<uint64_t> done{0};  // how often it dropped pins after an op
  std::atomic<Buffer*> list[kMaxPins]{};

  // Owning thread. Names are collected first and published by one store, in Engine::begin_op.
  void add(Buffer* buffer) {
    if (collected > 0 && list[collected - 1].load(std::memory_order_relaxed) == buffer) return;
    if (collected == kMaxPins) {
      overflow.store(true, std::memory_order_seq_cst);
      return;
    }
    // Released, so that who scans an older count and reads this name sees the op before as noted.
    list[collected++].store(buffer, std::memory_order_release);
  }
  void publish() { count.store(collected, std::memory_order_seq_cst); }
  void withdraw() { count.store(0, std::memory_order_release); }
  void clear() {
    if (collected == 0) return;
    collected = 0;
    withdraw();
    done.store(done.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    if (overflow.load(std::memory_order_relaxed)) overflow.store(false, std::memory_order_release);
  }
  Buffer* at(uint32_t i) const { return list[i].load(std::memory_order_acquire); }
};

class PinRegistry {
 public:
  ThreadPins* acquire();               // for the calling thread
  static void give_back(ThreadPins*);  // at thread exit
  // Whether a thread (other than this one) pins `buffer`. The caller has stored its claim
  // (sequentially consistent) before.
  bool pinned(const Buffer* buffer, const ThreadPins* except = nullptr) const;
  // Whether a thread other than this one pins anything.
  bool any_pins(const ThreadPins* except) const;
  // The threads but this one that pin something, and whether each has dropped since what it pinned.
  struct Held {
    const ThreadPins* pins;
    uint64_t done;
  };
  OwnVector<Held> held(const ThreadPins* except) const;
  static bool dropped(const OwnVector<Held>& held);

 private:
  friend class EngineTest;
  std::atomic<ThreadPins*> first_{nullptr};
};

}  // namespace offload
