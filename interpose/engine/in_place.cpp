// SPDX-License-Identifier: Apache-2.0
// An op whose own set does not fit: what could not come home is used in place, in its slot. Slow,
// but right. HOST stays HOST.

#include "interpose/engine/engine.h"
#include "profiler/base/log.h"
#include "profiler/base/units.h"

namespace offload {

// Makes the piece's address show its slot, now. kNotReady: the mutex was let go, look again.
Status Engine::show_slot(Buffer& buffer, Piece& piece, Lock& lock) {
  if (piece.busy) {
    look_again(lock);
    return Status::kNotReady;
  }
  Slot* slot = piece.slot;
  if (slot->mapped) return Status::kOk;
  if (holds(Clause::kFlagKeepsInPlace) && streams_.external_wait_pending() &&
      !streams_.passed(piece.copied))
    return Status::kOutOfMemory;
  piece.busy = true;
  if (holds(Clause::kInPlaceWaitsCopied))  // and so for e1, which the copy waited for
    wait_on_host(piece.copied, HostWait::oversized_operation, lock);
  const Address at = address_of(buffer, piece);
  const uint64_t bytes = bytes_of(piece);
  bool unmapped = false;
  slot->mapped = without_mutex(lock, [&] {
    unmapped = piece.shown == nullptr || timed_unmap(at, bytes) == Status::kOk;
    return unmapped && timed_map(at, bytes, slot->handle, Place::kHost) == Status::kOk;
  });
  if (unmapped && piece.shown != nullptr) {
    --piece.shown->shown_elsewhere;
    piece.shown = nullptr;
  }
  piece.busy = false;
  if (!slot->mapped) {
    statistics_.driver_errors.add();
    tend_later(buffer, piece);
    return Status::kOutOfMemory;
  }
  return Status::kNotReady;
}

// All that is named and away is shown where it is. On success nothing of it comes home or is freed
// before end_in_place().
Status Engine::use_in_place(ThreadPins& pins, Lock& lock) {
  if (config_.evicted != EvictedShows::kHostCopy || pins.overflow.load(std::memory_order_relaxed))
    return Status::kOutOfMemory;
  uint64_t bytes = 0;
  for (bool again = true; again;) {
    again = false;
    bytes = 0;
    for (uint32_t i = 0; i < pins.collected && !again; ++i) {
      Buffer& buffer = *pins.at(i);
      if (buffer.state.load(std::memory_order_relaxed) != BufferState::kMoving) continue;
      cancel(buffer);
      for (size_t index = 0; index < buffer.pieces.size() && !again; ++index) {
        Piece& piece = buffer.pieces[index];
        if (piece.state != PieceState::kHost) continue;
        const Status status = show_slot(buffer, piece, lock);
        again = status == Status::kNotReady;
        if (status != Status::kOk && !again) return status;
        bytes += bytes_of(piece);
      }
    }
  }
  uint64_t named = 0;
  for (uint32_t i = 0; i < pins.collected; ++i) {
    Buffer& buffer = *pins.at(i);
    ++buffer.in_place;
    named += buffer.granules * config_.granularity;
    for (Piece& piece : buffer.pieces) {
      if (piece.state != PieceState::kHost) continue;
      piece.used_in_place = true;
    }
  }
  pins.in_place = true;
  statistics_.in_place_bytes.add(bytes);
  if (statistics_.in_place_operations.get() == 0) {
    const ShortText away = format_size(bytes);
    const ShortText limit = format_size(extents_.capacity_bytes());
    if (named > extents_.capacity_bytes()) {
      log_warn(
          "an operation uses more than the %s of GPU memory there are: %s of it stay in host "
          "memory while it runs, which is slow; a larger OFFLOAD_GPU_LIMIT or a smaller batch "
          "avoids it",
          limit.c_str(), away.c_str());
    } else {
      log_warn(
          "an operation uses more than there is room for beside what else is in use of %s of GPU "
          "memory: %s of it stay in host memory while it runs, which is slow; a larger "
          "OFFLOAD_GPU_LIMIT or a smaller batch avoids it",
          limit.c_str(), away.c_str());
    }
  }
  statistics_.in_place_operations.add();
  return Status::kOk;
}

// The op is submitted: what it used in place changes hands behind it only.
void Engine::end_in_place(ThreadPins& pins, Point op) {
  const Lock lock(mutex_);
  for (uint32_t i = 0; i < pins.collected; ++i) {
    Buffer& buffer = *pins.at(i);
    for (Piece& piece : buffer.pieces) {
      if (piece.state != PieceState::kHost || !holds(Clause::kInPlaceIsUse)) continue;
      piece.leave.add(op);
      piece.copied.add(op);
    }
    if (buffer.in_place != 0) --buffer.in_place;
  }
  pins.in_place = false;
  changed_.notify_all();
}

}  // namespace offload
