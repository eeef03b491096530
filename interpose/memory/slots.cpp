// SPDX-License-Identifier: Apache-2.0
#include "interpose/memory/slots.h"

#include <algorithm>
#include <bit>

#include "interpose/engine/clauses.h"
#include "profiler/base/log.h"
#include "profiler/base/units.h"

namespace offload {

Slots::Slots(Port& port, Streams& streams, Statistics& statistics)
    : port_(port), streams_(streams), statistics_(statistics) {}

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

uint64_t Slots::free_bytes() const {
  uint64_t granules = reserve_ != nullptr ? reserve_->granules : 0;
  for (const OwnDeque<Slot*>& list : free_) {
    for (const Slot* slot : list) granules += slot->granules;
  }
  return granules * granularity_;
}

// Free slots of other sizes go back to the system until `bytes` more may be pinned. Only slots that
// are allocations of their own can.
bool Slots::shrink(uint64_t bytes) {
  if (!mappable_ || bytes > limit_) return false;
  for (OwnDeque<Slot*>& list : free_) {
    for (size_t left = list.size(); left > 0 && !room_for(bytes); --left) {
      Slot* slot = list.front();
      list.pop_front();
      if (!streams_.passed(slot->fence)) {
        list.push_back(slot);
        continue;
      }
      const uint64_t slot_bytes = slot->granules * granularity_;
      port_.unmap(slot->home, slot_bytes);
      port_.release(slot->handle);
      homes_.give_back(slot->home, slot->granules);
      pinned_ -= slot_bytes;
      statistics_.pinned_bytes.subtract(slot_bytes);
      slot->~Slot();
      own_free(slot);
    }
  }
  if (!room_for(bytes)) return false;
  host_full_ = false;
  return true;
}

// It serves, but cannot be shown at the program's address.
Slot* Slots::take_larger(uint32_t granules) {
  for (auto size = static_cast<size_t>(std::countr_zero(granules)) + 1; size < kSizes; ++size) {
    if (free_[size].empty()) continue;
    Slot* slot = free_[size].front();
    free_[size].pop_front();
    return slot;
  }
  return nullptr;
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
  if (same.empty() && !grow(granules) && shrink(granules * granularity_)) grow(granules);
  if (!same.empty()) {
    Slot* slot = same.front();
    same.pop_front();
    return slot;
  }
  if (Slot* larger = take_larger(granules); larger != nullptr) return larger;
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
