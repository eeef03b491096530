// SPDX-License-Identifier: Apache-2.0
// Where extents come from when somebody needs some: what is free, what is parked, what may leave,
// and at last a wait.

#include <algorithm>
#include <bit>

#include "interpose/engine/engine.h"
#include "profiler/base/log.h"

namespace offload {

void Engine::put_back(Extent* extent, const Fence& fence) {
  if (&extent->fence != &fence) extent->fence = fence;
  if (!holds(Clause::kPoolKeepsFence)) extent->fence.clear();
  extents_.put(extent);
}

// While something waits for the host, an extent whose fence has not passed may stand behind it, and
// its new owner would too.
Extent* Engine::take_pooled(uint32_t granules) {
  if (!holds(Clause::kFlagKeepsPool) || !streams_.external_wait_pending())
    return extents_.take(granules);
  Extent* extent = extents_.find([&](Extent& candidate) {
    return candidate.granules == granules && streams_.passed(candidate.fence);
  });
  return extent != nullptr && extents_.take(extent) ? extent : nullptr;
}

// Whether new memory of this size leaves enough free, on the device or the host, to swap any piece
// in that is away (Slots: the reserve).
bool Engine::leaves_reserve(uint64_t granules) const {
  if (!holds(Clause::kAllocationReserve) || slots_.used_bytes() == 0) return true;
  const uint64_t bytes = granules * config_.granularity + slots_.reserve_bytes();
  const uint64_t capacity = extents_.capacity_bytes();
  const uint64_t device = capacity - std::min(capacity, owned_bytes());
  return device + slots_.available_bytes() >= bytes;
}

// Whether memory that will never move leaves enough that moves for the largest buffer to be on the
// device, once buffers are away. Without it nothing that is away could come home.
bool Engine::leaves_room_to_swap(uint64_t granules) const {
  if (!holds(Clause::kRoomToSwap) || slots_.used_bytes() == 0) return true;
  uint64_t stays = slabs_.granules() + granules;
  uint64_t largest = 0;
  for (const Buffer* buffer : freed_held_) stays += buffer->granules;
  for (const Buffer* buffer : live_) {
    if (buffer->kept != 0 || buffer->held != 0) stays += buffer->granules;
    largest = std::max<uint64_t>(largest, buffer->granules);
  }
  return (stays + largest) * config_.granularity <= extents_.capacity_bytes();
}

// Whether new memory may be made. Between that and its making the mutex is let go: what others are
// about to get counts as theirs, and who would be refused for that alone waits for how it ends.
Engine::Room Engine::may_grow(uint32_t granules, bool for_slab, Lock& lock) {
  const auto leaves_enough = [&](uint64_t sought, uint64_t slabs) {
    return leaves_reserve(granules + sought) &&
           (!for_slab || leaves_room_to_swap(granules + slabs));
  };
  if (leaves_enough(holds(Clause::kGrowthCounts) ? sought_ : 0,
                    holds(Clause::kGrowthCounts) ? slabs_to_come_ : 0))
    return Room::kMade;
  if (leaves_enough(0, 0)) {
    look_again(lock);
    return Room::kWaited;
  }
  if (!leaves_reserve(granules)) {
    if (slots_.others_gave_back()) return Room::kWaited;
    statistics_.set_reason(Reason::host_memory_exhausted);
  }
  return Room::kNone;
}

// `granules` in as few extents as can be had. On failure nothing is held.
bool Engine::take_extents(uint32_t granules, ThreadPins* pins, Lock& lock,
                          OwnVector<Extent*>* out) {
  uint32_t left = granules;
  sought_ += granules;
  const auto drop_all = [&] {
    for (Extent* held : *out) put_back(held, held->fence);
    gathered_ -= granules - left;
    sought_ += granules - left;
    left = granules;
    out->clear();
  };
  while (left > 0) {
    if (others_go_first(pins)) {
      drop_all();
      stand_aside(pins, lock);
    }
    const uint32_t best = extents_.fitting(left);
    Extent* extent = take_pooled(best);
    if (extent == nullptr) extent = create(best, lock);
    for (uint32_t size = best / 2; extent == nullptr && size > 0; size /= 2) {
      extent = take_pooled(size);
      if (extent == nullptr) extent = create(size, lock);
    }
    if (extent != nullptr) {
      out->push_back(extent);
      left -= extent->granules;
      gathered_ += extent->granules;
      sought_ -= extent->granules;
      continue;
    }
    if (make_room(left, pins, false, lock) != Room::kNone) continue;
    drop_all();
    // Two threads that each hold a part of what there is: one lets go for the other.
    if (gathered_ == 0 || pins == nullptr || !another_turn(*pins)) {
      sought_ -= granules;
      return false;
    }
    look_again(lock);
  }
  gathered_ -= granules;
  // Largest first, so that a piece's size does not depend on which extents happened to be free.
  std::stable_sort(out->begin(), out->end(),
                   [](const Extent* a, const Extent* b) { return a->granules > b->granules; });
  return true;
}

// Never waits and gives an extent: whoever wants one for a piece starts over after a wait.
Extent* Engine::take_exact(uint32_t granules, ThreadPins* pins, Lock& lock, Status* status) {
  const uint64_t let_go = let_go_;
  for (;;) {
    if (Extent* extent = take_pooled(granules); extent != nullptr) return extent;
    if (Extent* extent = create(granules, lock); extent != nullptr) put_back(extent, Fence());
    if (let_go_ != let_go) {
      *status = Status::kNotReady;
      return nullptr;
    }
    Room room = make_room(granules, pins, true, lock);
    // A thread that gathers more holds what it has: it gets all, or lets go.
    if (room == Room::kNone && gathered_ != 0 && pins != nullptr && another_turn(*pins)) {
      pins->withdraw();
      look_again(lock);
      pins->publish();
      room = Room::kWaited;
    }
    const bool waited = room == Room::kWaited || let_go_ != let_go;
    if (room == Room::kMade && !waited) continue;
    *status = room == Room::kNone ? Status::kOutOfMemory : Status::kNotReady;
    return nullptr;
  }
}

// One step towards `granules` more of room.
Engine::Room Engine::make_room(uint32_t granules, ThreadPins* pins, bool for_restore, Lock& lock) {
  const bool only_finished = only_finished_may_leave();
  const bool served = pins != nullptr && pins->turns != 0 && holds(Clause::kServedTakes);
  met_pins_ = false;
  asking_ = pins;
  if (reclaim_parked(nullptr)) return Room::kMade;
  if (reshape(granules, false, lock)) return Room::kMade;
  if (reclaim_empty_slab()) return Room::kMade;
  const Wanted wanted{extents_.fitting(granules), for_restore};
  const uint64_t bytes = granules * config_.granularity;
  const auto make = [&](bool waive_grace, Wanted size) {
    asking_ = pins;
    if (hand_over_oldest(served, size)) return Room::kMade;
    if (evict_at_least(bytes, waive_grace, for_restore, size) != 0 &&
        hand_over_oldest(served, size))
      return Room::kMade;
    return pin_lacking(lock) ? Room::kWaited : Room::kNone;
  };
  // Enough is free in extents of other sizes, which only a wait makes fit: more of them is no use.
  const bool other_sizes =
      extents_.pool_bytes() + extents_.uncreated_bytes() >= wanted.granules * config_.granularity;
  // A piece comes home into its own size only. What is new can have any, so the policy's order
  // stands.
  Room room = make(false, for_restore ? wanted : kAnySize);
  if (room == Room::kNone && !other_sizes) room = make(false, kAnySize);
  if (room != Room::kNone) return room;
  if (reshape(granules, true, lock)) return Room::kWaited;
  room = make(false, kAnySize);
  if (room == Room::kNone) room = make(true, kAnySize);
  if (room != Room::kNone) return room;
  if (wait_for_slot(lock)) return Room::kWaited;
  if (only_finished && wait_for_finished(pins, lock)) return Room::kWaited;
  if (wait_in_line(pins, lock)) return Room::kWaited;
  // Pins are dropped without the mutex: what was pinned a moment ago may leave now.
  if (met_pins_ && holds(Clause::kDroppedPinsCount) && pins != nullptr && another_turn(*pins))
    return Room::kMade;
  if (calls_under_way_ != 0) {
    look_again(lock);
    return Room::kWaited;
  }
  if (create_after_all(granules, for_restore, lock)) return Room::kMade;
  if (log_enabled(LogLevel::kDebug)) describe_shortage(granules, for_restore);
  return Room::kNone;
}

Extent* Engine::create(uint32_t granules, Lock& lock) {
  Extent* extent = extents_.begin_create(granules);
  if (extent == nullptr) return nullptr;
  return extents_.end_create(extent, without_mutex(lock, [&] { return extents_.make(extent); }));
}

// One that is in nobody's reach.
bool Engine::destroy(Extent* extent, Lock& lock) {
  return extents_.end_destroy(extent, without_mutex(lock, [&] { return extents_.unmake(extent); }));
}

// The device refused memory before. Perhaps it has some now.
bool Engine::create_after_all(uint32_t granules, bool exactly, Lock& lock) {
  if (!extents_.try_again()) return false;
  Extent* extent = nullptr;
  for (uint32_t size = extents_.fitting(granules); extent == nullptr && size > 0; size /= 2) {
    extent = create(size, lock);
    if (exactly) break;
  }
  if (extent == nullptr) return false;
  put_back(extent, Fence());
  return true;
}

// Who holds the memory when there is no room: what a report of such a failure needs.
void Engine::describe_shortage(uint32_t granules, bool for_restore) {
  log_debug(
      "no room for %u granules%s: %llu in the pool, %llu not created, %llu parked, %llu leaving, "
      "%llu in slabs; "
      "host memory: %llu of %llu pinned",
      granules, for_restore ? " to bring a buffer back" : "", in_granules(extents_.pool_bytes()),
      in_granules(extents_.uncreated_bytes()), static_cast<unsigned long long>(parking_.granules()),
      in_granules(leaving_bytes_), static_cast<unsigned long long>(slabs_.granules()),
      in_granules(slots_.pinned_bytes()), in_granules(slots_.limit_bytes()));
  for (const Buffer* buffer : live_) {
    uint32_t on_device = 0;
    for (const Piece& piece : buffer->pieces)
      on_device += piece.extent != nullptr ? piece.granules : 0;
    if (on_device == 0) continue;
    log_debug("  buffer %llu: %u of %u granules on the GPU%s%s, idle for %llu operations",
              static_cast<unsigned long long>(buffer->id), on_device, buffer->granules,
              pin_registry_.pinned(buffer) ? ", in use by an operation" : "",
              buffer->kept != 0   ? ", kept"
              : buffer->held != 0 ? ", named by a graph"
                                  : "",
              static_cast<unsigned long long>(streams_.ops() -
                                              buffer->last_op.load(std::memory_order_relaxed)));
  }
}

// The pool holds enough, but in other sizes: gives extents back to the driver until one of the
// wanted size can be created. Rare: a steady loop asks for the same sizes again and again.
bool Engine::reshape(uint32_t granules, bool may_wait, Lock& lock) {
  const uint64_t wanted = extents_.fitting(granules) * config_.granularity;
  if (extents_.pool_bytes() + extents_.uncreated_bytes() < wanted) return false;
  while (extents_.uncreated_bytes() < wanted) {
    if (!destroy_pooled(may_wait, lock)) return false;
  }
  return true;
}

// One extent of the pool is given back to the driver. Its bytes; 0: there is none that could be.
uint64_t Engine::destroy_pooled(bool may_wait, Lock& lock) {
  const auto given_back = [&](Extent* extent) {
    const uint64_t bytes = extents_.bytes_of(*extent);
    return destroy(extent, lock) ? bytes : 0;
  };
  Extent* extent = extents_.find([&](Extent& candidate) {
    return candidate.shown_elsewhere == 0 && finished_with(candidate);
  });
  if (extent != nullptr) {
    extents_.take(extent);
    return given_back(extent);
  }
  if (!may_wait || streams_.external_wait_pending()) return 0;
  extent = extents_.find([](const Extent&) { return true; });
  if (extent == nullptr) return 0;
  extents_.take(extent);
  wait_on_host(extent->fence, HostWait::resizing, lock);
  wait_on_host(extent->read_by, HostWait::resizing, lock);
  if (!unshow(extent, lock)) {
    put_back(extent, extent->fence);
    return 0;
  }
  return given_back(extent);
}

// Whether all that the GPU was given to do with the extent is done.
bool Engine::finished_with(Extent& extent) {
  return streams_.passed(extent.fence) && streams_.passed(extent.read_by);
}

// Former owners' addresses stop showing the extent, now. Others may be at it, too.
bool Engine::unshow(Extent* extent, Lock& lock) {
  constexpr int kAttempts = 1000;
  for (int attempt = 0; attempt < kAttempts && extent->shown_elsewhere > 0; ++attempt) {
    const auto piece_job =
        std::find_if(piece_jobs_.begin(), piece_jobs_.end(), [&](const PieceJob& job) {
          const Piece* piece = piece_of(job, PieceState::kHost);
          return piece != nullptr && piece->shown == extent && !piece->busy;
        });
    if (piece_job != piece_jobs_.end()) {
      const PieceJob job = *piece_job;
      piece_jobs_.erase(piece_job);
      wait_on_host(piece_of(job, PieceState::kHost)->leave, HostWait::resizing, lock);
      if (tend_piece(job, lock) == Tended::kLater) piece_jobs_.push_back(job);
      continue;
    }
    const auto address_job =
        std::find_if(address_jobs_.begin(), address_jobs_.end(), [&](const AddressJob* job) {
          return std::any_of(
              job->shown.begin(), job->shown.end(),
              [&](const AddressJob::Shown& shown) { return shown.extent == extent; });
        });
    if (address_job != address_jobs_.end()) {
      AddressJob* job = *address_job;
      address_jobs_.erase(address_job);
      wait_on_host(job->fence, HostWait::resizing, lock);
      if (tend_address(*job, lock) == Tended::kLater) {
        address_jobs_.push_back(job);
      } else {
        forget_job(job);
      }
      continue;
    }
    look_again(lock);
  }
  return extent->shown_elsewhere == 0;
}

bool Engine::reclaim_parked(const Buffer* only) {
  // What stands behind an external flag serves only streams that stand there, too.
  const bool flagged = holds(Clause::kFlagKeepsParked) && streams_.external_wait_pending();
  Buffer* buffer = parking_.take_oldest([&](Buffer& parked) {
    return (only == nullptr || &parked == only) && (!flagged || streams_.passed(parked.parked));
  });
  if (buffer == nullptr) return false;
  statistics_.parked_bytes.subtract(buffer->granules * config_.granularity);
  dissolve(*buffer, Fence(buffer->parked));
  return true;
}

bool Engine::reclaim_empty_slab() {
  Slab* slab = slabs_.take_empty();
  if (slab == nullptr) return false;
  AddressJob job;
  job.address = slab->address;
  job.granules = slab->granules;
  for (const Block& block : slab->blocks) job.fence.add(block.fence);
  Address at = slab->address;
  for (Extent* extent : slab->extents) {
    const uint64_t bytes = extents_.bytes_of(*extent);
    ++extent->shown_elsewhere;
    put_back(extent, job.fence);
    job.shown.push_back({at, bytes, extent, nullptr});
    at += bytes;
  }
  window_.hide(slab->address, slab->granules);
  slabs_.forget(slab);
  leave_address(std::move(job));
  return true;
}

// Free host memory of the wrong size cannot be reshaped before the copies that use it have passed.
bool Engine::wait_for_slot(Lock& lock) {
  Fence fence;
  if (streams_.external_wait_pending() || !slots_.blocked(&fence)) return false;
  wait_on_host(fence, HostWait::slots, lock);
  return true;
}

// Only what the GPU has finished with may be taken (external flags, OFFLOAD_VICTIMS=finished). What
// waits for the host must not be waited for without end, so the GPU is given a limited time.
bool Engine::wait_for_finished(ThreadPins* pins, Lock& lock) {
  if (pins == nullptr || pins->looks >= config_.patience_ms) return false;
  const bool victims = may_move() && policy_.moves() &&
                       std::any_of(live_.begin(), live_.end(), [&](const Buffer* buffer) {
                         return evictable(*buffer, true) && !pin_registry_.pinned(buffer);
                       });
  if (!victims && extents_.pool_bytes() == 0 && parking_.granules() == 0) return false;
  ++pins->looks;
  const uint64_t begin = port_.now_nanoseconds();
  look_again(lock);
  statistics_.waited(HostWait::external_flag, port_.now_nanoseconds() - begin);
  return true;
}

}  // namespace offload
