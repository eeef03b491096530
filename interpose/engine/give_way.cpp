// SPDX-License-Identifier: Apache-2.0
// The driver needs device memory of its own: code that is loaded at its first launch, stacks,
// streams, what other libraries allocate.

#include "interpose/engine/engine.h"

namespace offload {

// What the calling thread has pinned stays where it is, so an operation may ask in its midst.
uint64_t Engine::give_way(uint64_t bytes) {
  Lock lock(mutex_);
  uint64_t given = 0;
  while (given < bytes) {
    if (extents_.pool_bytes() != 0) {
      const uint64_t destroyed = destroy_pooled(true, lock);
      extents_.lower_limit(destroyed);
      given += destroyed;
      if (destroyed != 0) continue;
    }
    if (reclaim_parked(nullptr) || reclaim_empty_slab() || hand_over_oldest(false)) continue;
    if (evict_at_least(bytes - given, false, false) != 0 || pin_lacking(lock)) continue;
    if (evict_at_least(bytes - given, true, false) != 0 || pin_lacking(lock)) continue;
    break;
  }
  return given;
}

void Engine::gave_way(uint64_t bytes, bool helped) {
  const Lock lock(mutex_);
  if (helped) {
    statistics_.given_way_bytes.add(bytes);
  } else {
    extents_.raise_limit(bytes);
  }
}

}  // namespace offload
