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
  limit_ = limit_bytes / granularity * granularity;
  largest_ = std::min<uint32_t>(std::bit_floor(largest_granules), 1u << (kSizes - 1));
  chunk_ = std::max(chunk_bytes, largest_ * granularity);
  mappable_ = mappable;
  if (!mappable_) return Status::kOk;
  return homes_.reserve(port_, std::max(2 * limit_, 64 * granularity), granularity, 0);
}

OwnDeque<Slot*>& Slots::list(uint32_t granules) {
  return free_[std::countr_zero(granules)];
}

Slot* Slots::make(uint32_t granules, Address pinned, Address block) {
  const uint64_t bytes = granules * granularity_;
  Slot fresh;
  fresh.granules = granules;
  fresh.home = pinned;
  fresh.block = block;
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
  free_granules_ += granules;
  statistics_.pinned_bytes.add(bytes);
  return own_new<Slot>(fresh);
}

// How many of `count` slots of `bytes` may be pinned beside what other processes have.
uint64_t Slots::allowed(uint64_t count, uint64_t bytes) {
  return share_ == nullptr ? count : share_->take(count * bytes, bytes) / bytes;
}

// Pins a chunk's worth of slots of this size, or what still fits. A system that refused is asked
// again only now and then, unless the caller insists.
bool Slots::grow(uint32_t granules, bool insist) {
  const uint64_t bytes = granules * granularity_;
  if (!room_for(bytes)) return false;
  if (host_full_ && !insist && ++refused_growths_ % kAskAgain != 0) return false;
  const bool refused_before = host_full_;
  host_full_ = false;
  const uint64_t wanted = refused_before ? 1 : std::max<uint64_t>(1, chunk_ / bytes);
  const uint64_t count = allowed(std::min(wanted, (limit_ - pinned_) / bytes), bytes);
  if (count == 0) {
    host_full_ = true;
    return false;
  }
  Address block = 0;
  if (!mappable_ && port_.allocate_pinned(count * bytes, &block) != Status::kOk) {
    host_full_ = true;
  }
  uint64_t made = 0;
  for (; made < count && !host_full_; ++made) {
    Slot* slot = make(granules, block + made * bytes, block);
    if (slot == nullptr) {
      host_full_ = true;
      break;
    }
    list(granules).push_back(slot);
  }
  if (share_ != nullptr && made != count) share_->give((count - made) * bytes);
  if (host_full_ && !refused_before) {
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

// Back to the system. False: the driver would not, and the slot stays.
bool Slots::drop(Slot* slot) {
  const uint64_t bytes = slot->granules * granularity_;
  if (port_.unmap(slot->home, bytes) != Status::kOk) return false;
  port_.release(slot->handle);
  homes_.give_back(slot->home, slot->granules);
  pinned_ -= bytes;
  free_granules_ -= slot->granules;
  statistics_.pinned_bytes.subtract(bytes);
  if (share_ != nullptr) share_->give(bytes);
  slot->~Slot();
  own_free(slot);
  return true;
}

// Free slots of other sizes go back to the system until `bytes` more may be pinned. One that
// refuses more than it gave may give as much again.
bool Slots::shrink(uint64_t bytes) {
  if (!mappable_ || bytes > limit_) return false;
  const uint64_t before = pinned_;
  const auto enough = [&] { return room_for(bytes) && (!host_full_ || before - pinned_ >= bytes); };
  for (OwnDeque<Slot*>& slots : free_) {
    for (size_t left = slots.size(); left > 0 && !enough(); --left) {
      Slot* slot = slots.front();
      slots.pop_front();
      if (!streams_.passed(slot->fence) || !drop(slot)) slots.push_back(slot);
    }
  }
  return enough();
}

// Halves a larger free slot of a pinned block.
bool Slots::cut(uint32_t granules) {
  if (mappable_) return false;
  uint32_t size = granules;
  while (size <= largest_ && list(size).empty()) size *= 2;
  if (size > largest_) return false;
  for (; size > granules; size /= 2) {
    Slot* slot = list(size).front();
    list(size).pop_front();
    slot->granules = size / 2;
    Slot* other = own_new<Slot>(*slot);
    other->home += size / 2 * granularity_;
    list(size / 2).push_front(other);
    list(size / 2).push_front(slot);
  }
  return true;
}

// Joins free neighbours of a pinned block.
bool Slots::join(uint32_t granules) {
  if (mappable_) return false;
  for (uint32_t size = 1; size < granules; size *= 2) {
    OwnDeque<Slot*>& slots = list(size);
    std::sort(slots.begin(), slots.end(),
              [](const Slot* a, const Slot* b) { return a->home < b->home; });
    for (size_t i = 0; i + 1 < slots.size(); ++i) {
      Slot* slot = slots[i];
      Slot* next = slots[i + 1];
      if (slot->block != next->block || slot->home + size * granularity_ != next->home) continue;
      slot->granules = 2 * size;
      slot->fence.add(next->fence);
      next->~Slot();
      own_free(next);
      const auto at = slots.begin() + static_cast<ptrdiff_t>(i);
      slots.erase(at, at + 2);
      list(2 * size).push_back(slot);
      --i;
    }
  }
  return !list(granules).empty();
}

// Whether the reserve is still pinned and free once a slot of this size is taken; grows for it.
bool Slots::keep_reserve(uint32_t granules) {
  if (!holds(Clause::kRestoreReserve)) return true;
  const uint64_t wanted = granules + reserve_bytes() / granularity_;
  while (free_granules_ < wanted) {
    if (grow(largest_, false)) continue;
    const uint64_t missing = std::bit_floor(wanted - free_granules_);
    if (!grow(static_cast<uint32_t>(std::min<uint64_t>(missing, largest_)), false)) return false;
  }
  return true;
}

Slot* Slots::take(uint32_t granules, bool for_restore) {
  if (!for_restore && !keep_reserve(granules)) return nullptr;
  OwnDeque<Slot*>& same = list(granules);
  if (same.empty() && !cut(granules) && !grow(granules, for_restore) && !join(granules) &&
      shrink(granules * granularity_)) {
    const bool refused = host_full_;
    grow(granules, true);
    host_full_ = host_full_ || refused;  // it gave what it got back
  }
  if (same.empty()) return nullptr;
  Slot* slot = same.front();
  same.pop_front();
  free_granules_ -= granules;
  return slot;
}

bool Slots::blocked(Fence* fence) {
  fence->clear();
  for (const OwnDeque<Slot*>& slots : free_) {
    for (const Slot* slot : slots) fence->add(slot->fence);
  }
  return !streams_.passed(*fence);
}

void Slots::put(Slot* slot, const Fence& fence) {
  slot->mapped = false;
  if (holds(Clause::kSlotKeepsFence)) {
    slot->fence = fence;
  } else {
    slot->fence.clear();
  }
  free_granules_ += slot->granules;
  list(slot->granules).push_back(slot);
}

void Slots::context_gone() {
  if (mappable_) return;
  for (OwnDeque<Slot*>& slots : free_) {
    for (Slot* slot : slots) {
      slot->~Slot();
      own_free(slot);
    }
    slots.clear();
  }
  statistics_.pinned_bytes.subtract(pinned_);
  if (share_ != nullptr) share_->give(pinned_);
  pinned_ = 0;
  free_granules_ = 0;
}

}  // namespace offload
