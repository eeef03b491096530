// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "interpose/engine/engine.h"

namespace offload {

// The context is gone, and with it streams, events and all that was queued. Physical memory and
// mappings are the process's and must be given back by hand.
bool Engine::context_gone() {
  Lock lock(mutex_);
  streams_.forget_all();
  const bool counted = !transfers_.forget_all();
  leaving_.clear();
  while (!live_.empty()) free_buffer(*live_.back(), Fence(), lock);
  while (!freed_held_.empty()) {
    Buffer& buffer = *freed_held_.back();
    freed_held_.pop_back();
    park(buffer, Fence());
  }
  slabs_.for_each([&](Slab& slab) {
    for (uint32_t i = 0; i < slab.blocks.size(); ++i) {
      Block& block = slab.blocks[i];
      if (!block.live && block.held == 0) continue;
      if (block.live) {
        statistics_.remove_live(block.bytes);
        statistics_.rounding_waste_bytes.subtract(slab.block_bytes - block.bytes);
      }
      block.held = 0;
      slabs_.put({&slab, i});
    }
  });
  while (reclaim_parked(nullptr)) {
  }
  while (reclaim_empty_slab()) {
  }
  for (size_t left = address_jobs_.size(); left > 0 && !address_jobs_.empty(); --left) {
    AddressJob* job = address_jobs_.front();
    address_jobs_.pop_front();
    if (tend_address(*job, lock) == Tended::kLater) {
      address_jobs_.push_back(job);
    } else {
      forget_job(job);
    }
  }
  piece_jobs_.clear();
  while (Extent* extent = extents_.find(
             [](const Extent& candidate) { return candidate.shown_elsewhere == 0; })) {
    extents_.take(extent);
    if (!destroy(extent, lock)) break;
  }
  Slots::Growth growth;
  slots_.context_gone(&growth);
  without_mutex(lock, [&] {
    slots_.pin(&growth);
    return true;
  });
  slots_.end(&growth);
  return counted;
}

bool Engine::follows_streams_of(void* context) {
  const Lock lock(mutex_);
  return streams_.asks_of(context);
}

void Engine::other_context_ends(void* context) {
  Lock lock(mutex_);
  std::erase(forgotten_, context);  // the driver did not destroy it then
  if (!streams_.has_met(context) || streams_.external_wait_pending()) return;
  Fence fence;
  bool all_seen = true;
  for (StreamIndex stream = 2; stream < streams_.count(); ++stream) {
    if (streams_.native(stream).context != context) continue;
    fence.add(streams_.now(stream));
    all_seen = all_seen && !streams_.per_thread(stream);  // of those only their threads know all
  }
  wait_on_host(std::move(fence), HostWait::synchronous_free, lock);
  if (!all_seen || streams_.external_wait_pending()) return;
  // Before the driver destroys it: then another thread may at once make one that has its handle.
  streams_.forget_streams(context);
  forgotten_.push_back(context);
}

void Engine::other_context_gone(void* context) {
  const Lock lock(mutex_);
  if (std::erase(forgotten_, context) == 0) streams_.forget(context);
  if (waiting_.load(std::memory_order_relaxed) != 0) changed_.notify_all();
}

}  // namespace offload
