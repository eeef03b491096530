// SPDX-License-Identifier: Apache-2.0
#include "interpose/memory/slots.h"

#include <algorithm>
#include <bit>

#include "interpose/engine/clauses.h"
#include "profiler/base/log.h"
#include "profiler/base/units.h"

namespace offload {

Slots::Slots(Port& port, Statistics& statistics) : port_(port), statistics_(statistics) {}

Status Slots::initialise(uint64_t granularity, uint64_t limit_bytes, uint32_t largest_granules,
                         uint64_t chunk_bytes, bool mappable) {
  granularity_ = granularity;
  limit_ = limit_bytes;
  largest_ = std::min<uint32_t>(std::bit_floor(largest_granules), 1u << (kSizes - 1));
  chunk_ = std::max(chunk_bytes, largest_ * granularity);
  mappable_ = mappable;
  if (!mappable_) return Status::kOk;
  return homes_.reserve(port_, std::max(2 * (limit_ / granularity * granularity), 64 * granularity),
                        granularity, 0);
}

Slot* Slots::make(uint32_t granules, Address pinned) {
  const uint64_t bytes = granules * granularity_;
  Slot fresh;
  fresh.granules = granules;
  fresh.home = pinned;
  if (mappable_) {
    fresh.home = homes_.take(granules);
    if (fresh.home == 0) return nullptr;
    Status status = port_.create(Place::kHost, bytes, &fresh.handle);
    if (status == Status::kOk) {
      status = port_.map(fresh.home, bytes, fresh.handle, Place::kHost, true);
      if (status != Status::kOk) port_.release(fresh.handle);
    }
    if (status != Status::kOk) {
      homes_.give_back(fresh.home, granules);
      return nullptr;
    }
  }
  pinned_ += bytes;
  statistics_.pinned_bytes.add(bytes);
  return own_new<Slot>(fresh);
}

// Pins a chunk's worth of slots of this size, or what still fits.
bool Slots::grow(uint32_t granules) {
  const uint64_t bytes = granules * granularity_;
  if (host_full_ || !room_for(bytes)) return false;
  const uint64_t count =
      std::min(std::max<uint64_t>(1, chunk_ / bytes), (limit_ - pinned_) / bytes);
  Address block = 0;
  if (!mappable_ && port_.allocate_pinned(count * bytes, &block) != Status::kOk) {
    host_full_ = true;
  }
  uint64_t made = 0;
  for (; made < count && !host_full_; ++made) {
    Slot* slot = make(granules, block + made * bytes);
    if (slot == nullptr) {
      host_full_ = true;
      break;
    }
    free_[std::countr_zero(granules)].push_back(slot);
  }
  if (host_full_) {
    const ShortText pinned = format_size(pinned_);
    log_warn(
        "the system pins no more host memory than %s: buffers stay on the GPU beyond that, and "
        "out-of-memory may follow; a smaller OFFLOAD_HOST_LIMIT avoids the attempt",
        pinned.c_str());
  }
  return made != 0;
}

bool Slots::ready(uint32_t granules) const {
  return !free_[std::countr_zero(granules)].empty();
}

Slot* Slots::take(uint32_t granules, bool for_restore) {
  if (reserve_ == nullptr && !reserve_taken_ && holds(Clause::kRestoreReserve)) {
    OwnDeque<Slot*>& largest = free_[std::countr_zero(largest_)];
    if (largest.empty() && room_for(largest_ * granularity_)) grow(largest_);
    if (!largest.empty()) {
      reserve_ = largest.front();
      largest.pop_front();
    }
  }
  OwnDeque<Slot*>& same = free_[std::countr_zero(granules)];
  if (same.empty()) grow(granules);
  if (!same.empty()) {
    Slot* slot = same.front();
    same.pop_front();
    return slot;
  }
  if (for_restore && reserve_ != nullptr) {
    Slot* slot = reserve_;
    reserve_ = nullptr;
    reserve_taken_ = true;
    return slot;
  }
  return nullptr;
}

void Slots::put(Slot* slot, const Fence& fence) {
  slot->mapped = false;
  if (holds(Clause::kSlotKeepsFence)) {
    slot->fence = fence;
  } else {
    slot->fence.clear();
  }
  if (reserve_taken_ && slot->granules == largest_) {
    reserve_ = slot;
    reserve_taken_ = false;
    return;
  }
  free_[std::countr_zero(slot->granules)].push_back(slot);
}

}  // namespace offload
