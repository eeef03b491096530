// SPDX-License-Identifier: Apache-2.0
#include "interpose/engine/pins.h"

#include <algorithm>

#include "interpose/life/heap.h"

namespace offload {

ThreadPins* PinRegistry::acquire() {
  for (ThreadPins* pins = first_.load(std::memory_order_acquire); pins != nullptr;
       pins = pins->next) {
    bool idle = false;
    if (pins->in_use.compare_exchange_strong(idle, true)) return pins;
  }
  ThreadPins* fresh = own_new<ThreadPins>();
  fresh->in_use.store(true);
  fresh->next = first_.load(std::memory_order_relaxed);
  while (!first_.compare_exchange_weak(fresh->next, fresh, std::memory_order_release)) {
  }
  return fresh;
}

void PinRegistry::give_back(ThreadPins* pins) {
  pins->clear();
  pins->in_use.store(false, std::memory_order_release);
}

bool PinRegistry::pinned(const Buffer* buffer, const ThreadPins* except) const {
  for (const ThreadPins* pins = first_.load(std::memory_order_acquire); pins != nullptr;
       pins = pins->next) {
    if (pins == except) continue;
    if (pins->overflow.load(std::memory_order_seq_cst)) return true;
    const uint32_t count = pins->count.load(std::memory_order_seq_cst);
    for (uint32_t i = 0; i < count; ++i) {
      if (pins->at(i) == buffer) return true;
    }
  }
  return false;
}

bool PinRegistry::any_pins(const ThreadPins* except) const {
  for (const ThreadPins* pins = first_.load(std::memory_order_acquire); pins != nullptr;
       pins = pins->next) {
    if (pins != except && pins->count.load(std::memory_order_acquire) != 0) return true;
  }
  return false;
}

OwnVector<PinRegistry::Held> PinRegistry::held(const ThreadPins* except) const {
  OwnVector<Held> all;
  for (const ThreadPins* pins = first_.load(std::memory_order_acquire); pins != nullptr;
       pins = pins->next) {
    if (pins == except || pins->count.load(std::memory_order_acquire) == 0) continue;
    all.push_back({pins, pins->done.load(std::memory_order_acquire)});
  }
  return all;
}

bool PinRegistry::dropped(const OwnVector<Held>& held) {
  return std::all_of(held.begin(), held.end(), [](const Held& each) {
    return each.pins->count.load(std::memory_order_acquire) == 0 ||
           each.pins->done.load(std::memory_order_acquire) != each.done;
  });
}

}  // namespace offload
