// SPDX-License-Identifier: Apache-2.0
// HOST to RES.

#include <algorithm>

#include "interpose/engine/engine.h"

namespace offload {

// Brings back every piece that is in host memory. What still leaves is cancelled.
Status Engine::restore(Buffer& buffer, ThreadPins* pins, Lock& lock) {
  wait_not_busy(buffer, lock);
  if (buffer.state.load(std::memory_order_relaxed) != BufferState::kMoving) return Status::kOk;
  cancel(buffer);
  if (buffer.state.load(std::memory_order_relaxed) != BufferState::kMoving) return Status::kOk;
  Event begin = nullptr;
  uint64_t copied = 0;
  Status status = Status::kOk;
  if (holds(Clause::kRestoreForgetsWaits))
    buffer.waited.store(0, std::memory_order_relaxed);  // its fill is about to change
  for (size_t i = 0; i < buffer.pieces.size() && status == Status::kOk; ++i) {
    Piece& piece = buffer.pieces[i];
    if (piece.state != PieceState::kHost) continue;
    const uint64_t bytes = bytes_of(piece);
    status = restore_piece(buffer, piece, pins, lock, &begin);
    if (status == Status::kOk) copied += bytes;
  }
  if (copied != 0) {
    transfers_.end(Lane::kIn, begin, buffer, copied);
    buffer.moved_bytes += copied;
  } else if (begin != nullptr) {
    streams_.recycle_timed(begin);
  }
  if (status != Status::kOk) return status;
  statistics_.demand_misses.add(copied != 0 ? 1 : 0);
  buffer.state.store(BufferState::kResident, std::memory_order_release);
  return Status::kOk;
}

Status Engine::restore_piece(Buffer& buffer, Piece& piece, ThreadPins* pins, Lock& lock,
                             Event* begin) {
  Status status = Status::kOk;
  // Ops that used it in place may stand behind an external flag.
  if (piece.used_in_place && holds(Clause::kFlagKeepsInPlace) && streams_.external_wait_pending() &&
      !streams_.passed(piece.leave))
    return Status::kOutOfMemory;
  Extent* extent = extent_for(piece, pins, lock, &status);
  // The mutex may have been let go then: the buffer may have been freed, the piece brought back.
  if (extent == nullptr) return status;
  if (piece.busy) {  // since an earlier piece had to wait: somebody unmaps what its address shows
    put_back(extent, Fence(extent->fence));
    return Status::kNotReady;
  }
  if (piece.shown == extent) {
    --extent->shown_elsewhere;  // its own again, and shown already
  } else if (!show(buffer, piece, extent, lock)) {
    put_back(extent, holds(Clause::kFailedMapKeepsFence) ? Fence(extent->fence) : Fence());
    statistics_.driver_errors.add();
    tend_later(buffer, piece);
    return Status::kOutOfMemory;
  }
  Slot* slot = piece.slot;
  buffer.fill.remove_if([&](const Point& point) { return streams_.passed(point); });
  const StreamIndex in = streams_.lane(Lane::kIn);
  if (holds(Clause::kRestoreWaitsFence)) streams_.wait(in, extent->fence);
  if (holds(Clause::kRestoreWaitsCopied)) streams_.wait(in, piece.copied);
  if (config_.verify) verify_slot(piece);
  if (*begin == nullptr) *begin = transfers_.begin(Lane::kIn);
  const uint64_t bytes = bytes_of(piece);
  for (uint64_t at = 0; at < bytes && status == Status::kOk; at += config_.copy_piece_bytes) {
    status = submit_copy(Lane::kIn, extent->home + at, slot->home + at,
                         std::min(config_.copy_piece_bytes, bytes - at));
  }
  const Point copied = streams_.advance_lane(in);
  if (status != Status::kOk) {
    // Nothing is lost: the slot keeps the content. The address shows an extent that nobody may
    // trust yet; the next attempt copies again into whatever it gets.
    piece.shown = extent;
    ++extent->shown_elsewhere;
    Fence fence = extent->fence;
    fence.add(copied);
    if (holds(Clause::kFailedCopyReadsSlot)) piece.copied.add(copied);
    put_back(extent, fence);
    tend_later(buffer, piece);
    statistics_.driver_errors.add();
    return status;
  }
  if (holds(Clause::kRestoreSetsFill)) buffer.fill.add(copied);
  Fence read;
  read.add(copied);
  slots_.put(slot, read);
  if (config_.verify) verify_return(buffer, piece, copied);
  statistics_.host_bytes.subtract(bytes_of(piece));
  extent->owner = &buffer;
  extent->piece = static_cast<uint32_t>(&piece - buffer.pieces.data());
  extent->fence.clear();
  piece.extent = extent;
  piece.shown = extent;
  piece.slot = nullptr;
  piece.used_in_place = false;
  piece.state = PieceState::kResident;
  ++piece.serial;
  return Status::kOk;
}

// Best is the extent that the address still shows: no remap, no host wait, and the worker cannot
// have unmapped it.
Extent* Engine::extent_for(Piece& piece, ThreadPins* pins, Lock& lock, Status* status) {
  if (Extent* shown = piece.shown; shown != nullptr) {
    if (Buffer* owner = shown->owner; owner != nullptr) {
      const uint32_t index = shown->piece;
      lacking_ = {};
      if (may_move() && evictable(*owner, false)) evict(*owner, false, true);
      if (pin_lacking(lock)) {
        *status = Status::kNotReady;
        return nullptr;
      }
      if (owner->pieces[index].state == PieceState::kLeaving) hand_over(*owner, index);
    }
    // A freed buffer whose memory is kept has it: cheaper than to wait.
    if (Buffer* owner = shown->owner;
        owner != nullptr && owner->state.load(std::memory_order_relaxed) == BufferState::kParked &&
        !streams_.passed(piece.leave)) {
      reclaim_parked(owner);
    }
    const bool behind_flag = holds(Clause::kFlagKeepsPool) && streams_.external_wait_pending() &&
                             !streams_.passed(shown->fence);
    if (!behind_flag && shown->owner == nullptr && extents_.take(shown)) return shown;
  }
  return take_exact(piece.granules, pins, lock, status);
}

// Makes the piece's address show `extent`. What it showed before may only go once the buffer's
// earlier ops have finished.
bool Engine::show(Buffer& buffer, Piece& piece, Extent* extent, Lock& lock) {
  const Address at = address_of(buffer, piece);
  const uint64_t bytes = bytes_of(piece);
  piece.busy = true;
  if (piece.shown != nullptr && holds(Clause::kRestoreChecksLeave)) {
    wait_on_host(piece.leave, HostWait::reuse_of_an_address, lock);
  }
  if (piece.slot->mapped && piece.used_in_place) {
    wait_on_host(piece.leave, HostWait::oversized_operation, lock);
  }
  const bool shows = piece.shown != nullptr || piece.slot->mapped;
  bool unmapped = false;
  const bool mapped = without_mutex(lock, [&] {
    unmapped = !shows || timed_unmap(at, bytes) == Status::kOk;
    return unmapped && timed_map(at, bytes, extent->handle, Place::kDevice) == Status::kOk;
  });
  piece.busy = false;
  if (!unmapped) return false;
  if (piece.shown != nullptr) --piece.shown->shown_elsewhere;
  piece.shown = nullptr;
  piece.slot->mapped = false;
  return mapped;
}

}  // namespace offload
