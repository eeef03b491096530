// SPDX-License-Identifier: Apache-2.0
// RES to EVG, EVG back to RES, EVG to HOST. All under the mutex; nothing here waits for the GPU.

#include <algorithm>
#include <utility>

#include "interpose/engine/engine.h"

namespace offload {

// What can be said without a claim. Whether somebody pins it is asked after the claim.
bool Engine::evictable(const Buffer& buffer, bool waive_grace) const {
  const BufferState state = buffer.state.load(std::memory_order_relaxed);
  // A buffer may be half away (host memory or room ran short); the other half can go, too.
  const bool half = state == BufferState::kMoving && resident_bytes(buffer) != 0;
  if (state != BufferState::kResident && !half) return false;
  if (buffer.kept != 0 || buffer.rehearsed_away) return false;
  if (buffer.held != 0 && holds(Clause::kGraphHolds)) return false;
  const uint64_t named = buffer.last_op.load(std::memory_order_relaxed);
  if (named == 0 && !holds(Clause::kUnusedIsEvictable)) return false;
  if (waive_grace || !holds(Clause::kGrace)) return true;
  const uint64_t last = std::max(named, buffer.birth_op);
  return streams_.ops() >= last + config_.grace_ops;
}

bool Engine::pinned(const Buffer& buffer) {
  if (!pin_registry_.pinned(&buffer)) return false;
  met_pins_ = met_pins_ || pin_registry_.pinned(&buffer, asking_);
  return true;
}

uint64_t Engine::resident_bytes(const Buffer& buffer, Wanted wanted) const {
  uint64_t bytes = 0;
  for (const Piece& piece : buffer.pieces) {
    if (piece.state == PieceState::kResident && wanted.served_by(piece.granules))
      bytes += bytes_of(piece);
  }
  return bytes;
}

// Every use on every stream.
Fence Engine::use_fence(const Buffer& buffer) {
  Fence fence;
  for (const std::atomic<uint64_t>& slot : buffer.use) {
    const uint64_t use = slot.load(std::memory_order_relaxed);
    if (use == 0) continue;
    const StreamIndex stream = static_cast<StreamIndex>(use >> 48) - 1;
    if (!holds(Clause::kAllStreamsInLeave) && !fence.empty()) break;
    fence.add(streams_.covering(stream, use & Buffer::kPositionMask, 0));
  }
  if (buffer.use_overflow.load(std::memory_order_relaxed)) fence.add(everything_submitted());
  return fence;
}

// e1: every use on every stream, the fill, and every stream that ran an op during grace. What no op
// has named may have been used all the same, through pointers that we cannot see, by any.
Fence Engine::leave_fence(const Buffer& buffer, bool waive_grace) {
  Fence leave;
  const uint64_t last = buffer.last_op.load(std::memory_order_relaxed);
  const uint64_t grace_end = waive_grace ? streams_.ops() : last + config_.grace_ops;
  if (holds(Clause::kUseInLeave)) leave = use_fence(buffer);
  if (last == 0 && holds(Clause::kUnnamedMayBeUsed)) leave.add(everything_submitted());
  if (holds(Clause::kGraceStreams) && last != 0) {
    for (StreamIndex stream = 2; stream < streams_.count(); ++stream) {
      if (streams_.last_op(stream) < last) continue;
      leave.add(streams_.covering(stream, 0, grace_end));
    }
  }
  if (holds(Clause::kFillInLeave)) leave.add(buffer.fill);
  return leave;
}

// Returns the bytes that started to leave; less than the buffer if host memory ran short.
uint64_t Engine::evict(Buffer& buffer, bool waive_grace, bool for_restore) {
  // The claim, before e1 is taken: an op of another thread either sees it, or is seen by the look
  // at the pins.
  const BufferState before = buffer.state.load(std::memory_order_relaxed);
  edge(Edge::kClaim);
  buffer.state.store(BufferState::kMoving, std::memory_order_seq_cst);
  edge(Edge::kScan);
  if (holds(Clause::kClaimChecksPins) && pinned(buffer)) {
    buffer.state.store(before, std::memory_order_release);
    return 0;
  }
  edge(Edge::kUses);
  Fence leave = leave_fence(buffer, waive_grace);
  if (only_finished_may_leave() && !streams_.passed(leave)) {
    buffer.state.store(before, std::memory_order_release);
    return 0;
  }
  uint64_t bytes = 0;
  std::optional<Event> begin;
  for (Piece& piece : buffer.pieces) {
    if (piece.state != PieceState::kResident) continue;
    if (evict_piece(buffer, piece, leave, for_restore, &begin)) bytes += bytes_of(piece);
    if (lacking_.granules != 0) break;
  }
  if (bytes != 0) {
    transfers_.end(Lane::kOut, *begin, buffer, bytes);
    buffer.moved_bytes += bytes;
  } else if (begin.value_or(nullptr) != nullptr) {
    streams_.recycle_timed(*begin);
  }
  if (bytes == 0) buffer.state.store(before, std::memory_order_release);
  return bytes;
}

// `begin`: the event before the buffer's first copy, recorded here so that an attempt which finds
// no slot leaves nothing on the lane.
bool Engine::evict_piece(Buffer& buffer, Piece& piece, const Fence& leave, bool for_restore,
                         std::optional<Event>* begin) {
  Slot* slot = slots_.take(piece.granules, for_restore, &lacking_);
  if (slot == nullptr) {
    if (lacking_.granules == 0 && slots_.at_limit(piece.granules))
      statistics_.set_reason(Reason::host_memory_exhausted);
    return false;
  }
  const StreamIndex out = streams_.lane(Lane::kOut);
  if (!begin->has_value()) {
    if (holds(Clause::kCopyOutWaitsLeave)) streams_.wait(out, leave);
    *begin = transfers_.begin(Lane::kOut);
  }
  if (holds(Clause::kCopyOutWaitsSlot)) streams_.wait(out, slot->fence);
  const uint64_t bytes = bytes_of(piece);
  Status status = Status::kOk;
  for (uint64_t at = 0; at < bytes && status == Status::kOk; at += config_.copy_piece_bytes) {
    status = submit_copy(Lane::kOut, slot->home + at, piece.extent->home + at,
                         std::min(config_.copy_piece_bytes, bytes - at));
  }
  const Point copied = streams_.advance_lane(out);
  if (status != Status::kOk) {
    statistics_.driver_errors.add();
    // The lane has waited for the slot's own fence.
    Fence fence;
    if (holds(Clause::kFailedCopyKeepsSlot)) fence.add(copied);
    slots_.put(slot, fence);
    if (holds(Clause::kCalledOffCopyReads)) piece.extent->read_by.add(copied);
    return false;
  }
  piece.leave = leave;
  piece.copied.clear();
  piece.copied.add(copied);
  if (config_.verify) verify_leave(piece, *slot, copied);
  piece.slot = slot;
  piece.serial = next_serial_++;
  piece.state = PieceState::kLeaving;
  leaving_bytes_ += bytes_of(piece);
  statistics_.host_bytes.add(bytes_of(piece));
  leaving_.push_back({&buffer, static_cast<uint32_t>(&piece - buffer.pieces.data()), piece.serial});
  return true;
}

// EVG to RES: the copy goes on, harmlessly; its slot is free behind it.
void Engine::cancel(Buffer& buffer) {
  if (buffer.rehearsed_away) [[unlikely]]
    rehearse_return(buffer, true);
  bool all_resident = true;
  bool cancelled = false;
  for (Piece& piece : buffer.pieces) {
    if (piece.state == PieceState::kLeaving) {
      slots_.put(piece.slot, holds(Clause::kCalledOffSlotWaits) ? piece.copied : Fence());
      piece.slot = nullptr;
      if (holds(Clause::kCalledOffCopyReads)) piece.extent->read_by.add(piece.copied);
      piece.state = PieceState::kResident;
      leaving_bytes_ -= bytes_of(piece);
      statistics_.host_bytes.subtract(bytes_of(piece));
      cancelled = true;
    }
    all_resident = all_resident && piece.state == PieceState::kResident;
  }
  if (cancelled) statistics_.cancelled_evictions.add();
  if (all_resident) buffer.state.store(BufferState::kResident, std::memory_order_release);
}

// EVG to HOST, unless somebody names the buffer (he is about to cancel this). The extent goes to
// the pool behind e2. The address shows it until the worker has unmapped it.
// Who has waited in line takes it even then: its user brings it back, and waits in line for that.
// Otherwise a thread that names it again and again would have everybody else refused.
bool Engine::hand_over(Buffer& buffer, uint32_t index, bool even_pinned) {
  if (pinned(buffer) && !even_pinned) return false;
  Piece& piece = buffer.pieces[index];
  Extent* extent = piece.extent;
  piece.extent = nullptr;
  piece.shown = extent;
  piece.state = PieceState::kHost;
  leaving_bytes_ -= bytes_of(piece);
  ++extent->shown_elsewhere;
  Fence fence;
  if (holds(Clause::kFillIsCopied)) fence = piece.copied;
  put_back(extent, fence);
  tend_later(buffer, piece);
  return true;
}

bool Engine::hand_over_oldest(bool even_pinned, Wanted wanted) {
  for (size_t left = leaving_.size(); left > 0; --left) {
    const PieceJob job = leaving_.front();
    leaving_.pop_front();
    const bool valid = job.piece < job.buffer->pieces.size() &&
                       job.buffer->pieces[job.piece].serial == job.serial &&
                       job.buffer->pieces[job.piece].state == PieceState::kLeaving;
    if (!valid) continue;  // cancelled or freed meanwhile
    if (wanted.served_by(job.buffer->pieces[job.piece].granules) &&
        hand_over(*job.buffer, job.piece, even_pinned))
      return true;
    leaving_.push_back(job);  // another size; or pinned: its user is about to cancel it
  }
  return false;
}

// Pins what the last attempt to evict lacked. That is slow, so the mutex is let go; who comes for
// the same meanwhile waits for it. True: start over.
bool Engine::pin_lacking(Lock& lock) {
  const Lacking lacking = std::exchange(lacking_, {});
  if (lacking.granules == 0) return false;
  if (pins_behind_work() && streams_.external_wait_pending()) {
    statistics_.set_reason(Reason::pinning_could_wait);
    return false;
  }
  const uint64_t begin = port_.now_nanoseconds();
  Slots::Growth growth;
  if (pinning_) {
    while (pinning_) look_again(lock);
  } else if (slots_.begin(lacking, &growth)) {
    pinning_ = true;
    without_mutex(lock, [&] {
      slots_.pin(&growth);
      return true;
    });
    slots_.end(&growth);
    pinning_ = false;
  } else {
    return true;
  }
  statistics_.waited(HostWait::slots, port_.now_nanoseconds() - begin);
  return true;
}

uint64_t Engine::owned_bytes() const {
  return extents_.mapped_bytes() - extents_.pool_bytes() -
         parking_.granules() * config_.granularity - leaving_bytes_;
}

// All that may leave, in the policy's order, as indices into live_; returns how many.
size_t Engine::choose_victims(bool waive_grace) {
  candidates_.clear();
  for (const Buffer* buffer : live_) {
    candidates_.push_back({.id = buffer->id,
                           .bytes = buffer->granules * config_.granularity,
                           .birth_position = buffer->birth_op,
                           .last_use_position = std::max(
                               buffer->last_op.load(std::memory_order_relaxed), buffer->birth_op),
                           .eligible = evictable(*buffer, waive_grace) && !pinned(*buffer)});
  }
  order_.resize(candidates_.size());
  return policy_.choose_victims(candidates_, ~uint64_t{0}, streams_.ops(), order_);
}

// Starts evictions until `bytes` of the wanted size are on their way out, nothing is left to take,
// or host memory has to be pinned first (lacking_). Victims that turn out not to be able to leave
// are skipped.
uint64_t Engine::evict_at_least(uint64_t bytes, bool waive_grace, bool for_restore, Wanted wanted) {
  lacking_ = {};
  if (!may_move() || !policy_.moves()) return 0;
  uint64_t leaving = 0;
  const size_t chosen = choose_victims(waive_grace);
  for (size_t i = 0; i < chosen && leaving < bytes && lacking_.granules == 0; ++i) {
    Buffer& victim = *live_[order_[i]];
    const uint64_t served = resident_bytes(victim, wanted);
    if (served != 0) leaving += std::min(served, evict(victim, waive_grace, for_restore));
  }
  return leaving;
}

// The watermark: makes room before anybody has to wait for it. May let the mutex go.
void Engine::relieve_pressure(Lock& lock) {
  if (rehearsing()) [[unlikely]]
    return rehearse_room();
  do {
    if (!may_move() || !policy_.moves()) return;
    const uint64_t wanted = policy_.bytes_to_free(
        {.total_bytes = extents_.limit_bytes(), .mapped_bytes = owned_bytes()});
    pressure_.store(wanted != 0, std::memory_order_relaxed);
    if (wanted == 0 || streams_.ops() < quiet_until_op_) return;
    if (evict_at_least(wanted, false, false) == 0 && lacking_.granules == 0) {
      quiet_until_op_ = streams_.ops() + config_.grace_ops / 4 + 1;
    }
  } while (pin_lacking(lock));
}

}  // namespace offload
