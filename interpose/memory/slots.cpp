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

// How many of `count` slots of `bytes` may be pinned beside what other processes have.
uint64_t Slots::allowed(uint64_t count, uint64_t bytes) {
  return share_ == nullptr ? count : share_->take(count * bytes, bytes) / bytes;
}

// A system that refused is asked again only now and then, unless the caller insists.
bool Slots::may_pin(uint32_t granules, bool insist) {
  if (!room_for(granules * granularity_)) return false;
  return !host_full_ || (insist && !in_vain_) || ++refused_growths_ % kAskAgain == 0;
}

bool Slots::others_gave_back() {
  const uint64_t bytes = largest_ * granularity_;
  if (!others_have_it_ || !room_for(bytes)) return false;
  const uint64_t given = share_->take(bytes, bytes);
  share_->give(given);
  if (given == 0) return false;
  host_full_ = in_vain_ = others_have_it_ = false;
  return true;
}

// Whether so much more may be pinned once that was given back. A system that refuses more than it
// gave may give as much again.
bool Slots::enough_given(uint64_t given, uint64_t bytes) const {
  return pinned_ - given + bytes <= limit_ && (!host_full_ || given >= bytes);
}

bool Slots::can_make_way(uint64_t bytes) {
  if (!mappable_ || bytes > limit_) return false;
  uint64_t given = 0;
  for (const OwnDeque<Slot*>& slots : free_) {
    for (Slot* slot : slots) {
      if (streams_.passed(slot->fence)) given += slot->granules * granularity_;
    }
  }
  return given != 0 && enough_given(given, bytes);
}

void Slots::make_way(uint64_t bytes, OwnVector<Slot*>* back) {
  uint64_t given = 0;
  for (OwnDeque<Slot*>& slots : free_) {
    for (size_t left = slots.size(); left > 0 && !enough_given(given, bytes); --left) {
      Slot* slot = slots.front();
      slots.pop_front();
      if (!streams_.passed(slot->fence)) {
        slots.push_back(slot);
        continue;
      }
      given += slot->granules * granularity_;
      free_granules_ -= slot->granules;
      back->push_back(slot);
    }
  }
  pinned_ -= given;
  if (share_ != nullptr) share_->give(given);
}

// A chunk's worth of slots, or what still fits.
bool Slots::begin(const Lacking& lacking, Growth* growth) {
  const uint64_t bytes = lacking.granules * granularity_;
  growth->granules = lacking.granules;
  growth->generation = generation_;
  growth->refused_before = host_full_;
  if (lacking.make_way) make_way(bytes, &growth->back);
  if (room_for(bytes)) {
    const uint64_t wanted = host_full_ ? 1 : std::max<uint64_t>(1, chunk_ / bytes);
    growth->count = allowed(std::min(wanted, (limit_ - pinned_) / bytes), bytes);
    if (growth->count == 0) host_full_ = in_vain_ = others_have_it_ = true;
  }
  for (uint64_t i = 0; mappable_ && i < growth->count; ++i) {
    const Address home = homes_.take(growth->granules);
    if (home == 0) break;
    growth->homes.push_back(home);
  }
  return growth->count != 0 || !growth->back.empty();
}

bool Slots::make_one(Growth* growth, Address home) const {
  const uint64_t bytes = growth->granules * granularity_;
  Slot fresh;
  fresh.granules = growth->granules;
  fresh.home = home;
  if (port_.create(Place::kHost, bytes, &fresh.handle) != Status::kOk) return false;
  if (port_.map(home, bytes, fresh.handle, Place::kHost, true) != Status::kOk) {
    port_.release(fresh.handle);
    return false;
  }
  growth->made.push_back(fresh);
  return true;
}

void Slots::pin(Growth* growth) const {
  for (Slot* slot : growth->back) {
    if (port_.unmap(slot->home, slot->granules * granularity_) != Status::kOk) continue;
    port_.release(slot->handle);
    slot->handle = 0;
  }
  if (mappable_) {
    for (const Address home : growth->homes) {
      if (!make_one(growth, home)) break;
    }
    return;
  }
  const uint64_t bytes = growth->granules * granularity_;
  Address block = 0;
  if (growth->count == 0 || port_.allocate_pinned(growth->count * bytes, &block) != Status::kOk)
    return;
  for (uint64_t i = 0; i < growth->count; ++i) {
    Slot fresh;
    fresh.granules = growth->granules;
    fresh.home = block + i * bytes;
    fresh.block = block;
    growth->made.push_back(fresh);
  }
}

// One that the driver would not unmap stays.
void Slots::gave_back(Slot* slot) {
  const uint64_t bytes = slot->granules * granularity_;
  if (slot->handle != 0) {
    if (share_ != nullptr) share_->take(bytes, bytes);
    pinned_ += bytes;
    free_granules_ += slot->granules;
    list(slot->granules).push_back(slot);
    return;
  }
  homes_.give_back(slot->home, slot->granules);
  statistics_.pinned_bytes.subtract(bytes);
  slot->~Slot();
  own_free(slot);
}

void Slots::end(Growth* growth) {
  const uint64_t bytes = growth->granules * granularity_;
  for (Slot* slot : growth->back) gave_back(slot);
  for (size_t i = growth->made.size(); i < growth->homes.size(); ++i)
    homes_.give_back(growth->homes[i], growth->granules);
  const bool gone = !mappable_ && growth->generation != generation_;  // with its context
  if (gone) growth->made.clear();
  const uint64_t made = growth->made.size();
  for (const Slot& slot : growth->made) list(growth->granules).push_back(own_new<Slot>(slot));
  pinned_ += made * bytes;
  free_granules_ += made * growth->granules;
  statistics_.pinned_bytes.add(made * bytes);
  if (share_ != nullptr && made != growth->count) share_->give((growth->count - made) * bytes);
  if (gone || growth->count == 0 || port_.lost()) return;
  in_vain_ = made == 0;
  // Where it gave no more than it got back, it is as full as before.
  host_full_ = made != growth->count || (growth->refused_before && !growth->back.empty());
  others_have_it_ = others_have_it_ && host_full_ && made == growth->count;
  if (made != growth->count && !growth->refused_before) {
    const ShortText pinned = format_size(pinned_);
    log_warn(
        "the system pins no more host memory than %s: buffers stay on the GPU beyond that, and "
        "out-of-memory may follow; a smaller OFFLOAD_HOST_LIMIT avoids the attempt",
        pinned.c_str());
  }
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

// Whether the reserve would no longer be pinned and free once a slot of this size is taken.
bool Slots::lacks_reserve(uint32_t granules, Lacking* lacking) {
  if (!holds(Clause::kRestoreReserve)) return false;
  const uint64_t wanted = granules + reserve_bytes() / granularity_;
  if (free_granules_ >= wanted) return false;
  const auto missing =
      static_cast<uint32_t>(std::min<uint64_t>(std::bit_floor(wanted - free_granules_), largest_));
  for (const uint32_t size : {largest_, missing}) {
    if (lacking->granules == 0 && may_pin(size, false)) lacking->granules = size;
  }
  return true;
}

Slot* Slots::take(uint32_t granules, bool for_restore, Lacking* lacking) {
  *lacking = {};
  if (!for_restore && lacks_reserve(granules, lacking)) return nullptr;
  OwnDeque<Slot*>& same = list(granules);
  if (same.empty() && !cut(granules)) {
    if (may_pin(granules, for_restore)) {
      *lacking = {granules, false};
      return nullptr;
    }
    if (!join(granules)) {
      if (can_make_way(granules * granularity_)) *lacking = {granules, true};
      return nullptr;
    }
  }
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
  in_vain_ = false;
  if (holds(Clause::kSlotKeepsFence)) {
    slot->fence = fence;
  } else {
    slot->fence.clear();
  }
  free_granules_ += slot->granules;
  list(slot->granules).push_back(slot);
}

// Those that can be shown are the process's, and outlive the context.
void Slots::context_gone(Growth* growth) {
  if (mappable_) {
    for (OwnDeque<Slot*>& slots : free_) {
      growth->back.insert(growth->back.end(), slots.begin(), slots.end());
      slots.clear();
    }
    pinned_ -= free_bytes();
    if (share_ != nullptr) share_->give(free_bytes());
    free_granules_ = 0;
    return;
  }
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
  ++generation_;
}

}  // namespace offload
