// SPDX-License-Identifier: Apache-2.0
#include "interpose/engine/engine.h"

namespace offload {

// The context is gone, and with it streams, events and all that was queued. Physical memory and
// mappings are the process's and must be given back by hand.
void Engine::context_gone() {
  Lock lock(mutex_);
  streams_.forget_all();
  transfers_.forget_all();
  leaving_.clear();
  while (!live_.empty()) free_buffer(*live_.back(), Fence(), lock);
  while (!freed_held_.empty()) {
    Buffer& buffer = *freed_held_.back();
    freed_held_.pop_back();
    park(buffer, Fence());
  }
  slabs_.for_each([&](Slab& slab) {
    for (uint32_t i = 0; i < slab.blocks.size(); ++i) {
      if (!slab.blocks[i].live) continue;
      statistics_.remove_live(slab.blocks[i].bytes);
      statistics_.rounding_waste_bytes.subtract(slab.block_bytes - slab.blocks[i].bytes);
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
    if (!extents_.destroy(extent)) break;
  }
  slots_.context_gone();
}

}  // namespace offload
