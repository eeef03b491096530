// SPDX-License-Identifier: Apache-2.0
#include "interpose/engine/engine.h"

namespace offload {

// All that the program has submitted to any stream.
Fence Engine::everything_submitted() {
  Fence fence;
  for (StreamIndex stream = 2; stream < streams_.count(); ++stream) {
    const Point now = streams_.now(stream);
    if (now.position != 0 && !streams_.known_passed(now)) fence.add(now);
  }
  return fence;
}

// cuMemFree synchronises, and programs rely on it; but it waits for the program's streams only, so
// what our own copies still do stays in the fence (fill). Without PyTorch's cache it is called for
// every tensor: then it fences instead.
Status Engine::free(Address base, ThreadPins*) {
  Lock lock(mutex_);
  const Fence everything = everything_submitted();
  if (config_.free_is_fenced) {
    return free_with(base, holds(Clause::kUncachedFreeFencesAll) ? everything : Fence(), lock);
  }
  if (!owns(base)) return Status::kNotOurs;
  const bool held = is_held(base);
  if (holds(Clause::kFreeWaits)) wait_on_host(everything, HostWait::synchronous_free, lock);
  // Meanwhile a graph that names it may have been launched, and is gone by now perhaps.
  const bool behind = held && holds(Clause::kHeldGoesBehindUse);
  return free_with(base, behind ? everything_submitted() : Fence(), lock);
}

Status Engine::free_async(Address base, StreamIndex stream, ThreadPins*) {
  Lock lock(mutex_);
  if (!owns(base)) return Status::kNotOurs;
  // What the program ordered before the free, it ordered by making this stream wait.
  Fence fence;
  if (holds(Clause::kFreeHasPosition)) {
    fence.add(streams_.here(stream));
  } else if (const Point now = streams_.now(stream); now.position != 0) {
    fence.add(now);
  }
  return free_with(base, std::move(fence), lock);
}

Status Engine::free_with(Address base, Fence fence, Lock& lock) {
  if (!owns(base)) return Status::kNotOurs;
  if (Slab* slab = window_.slab_at(base); slab != nullptr) {
    const BlockAt at = Slabs::find(*slab, base);
    if (at.index >= slab->blocks.size() || at.address() != base || !at.block().live) {
      return Status::kInvalid;
    }
    const uint64_t bytes = at.block().bytes;
    tables_.forget(base, base + slab->block_bytes);
    statistics_.rounding_waste_bytes.subtract(slab->block_bytes - bytes);
    if (holds(Clause::kBlockKeepsFence) && !streams_.passed(at.block().fence)) {
      fence.add(at.block().fence);
    }
    at.block().fence = std::move(fence);
    at.block().live = false;
    if (at.block().held == 0 || !holds(Clause::kFreedIsHeld)) slabs_.put(at);
    statistics_.remove_live(bytes);
    statistics_.frees.add();
    return Status::kOk;
  }
  Buffer* buffer = window_.buffer_at(base);
  if (buffer == nullptr || buffer->address != base) return Status::kInvalid;
  return free_buffer(*buffer, std::move(fence), lock) ? Status::kOk : Status::kInvalid;
}

// False: it is not live, or no longer when its turn comes.
bool Engine::free_buffer(Buffer& buffer, Fence fence, Lock& lock) {
  const uint64_t id = buffer.id;
  const bool was_held = buffer.held != 0;
  wait_not_busy(buffer, lock);
  const BufferState state = buffer.state.load(std::memory_order_relaxed);
  if (buffer.id != id || (state != BufferState::kResident && state != BufferState::kMoving))
    return false;
  if (was_held && buffer.held == 0 && holds(Clause::kHeldGoesBehindUse))
    fence.add(use_fence(buffer));
  policy_.freed(buffer.bytes, streams_.ops() - buffer.birth_op);
  if (buffer.rehearsed_away) rehearse_return(buffer, false);
  if (holds(Clause::kFreeCancels)) cancel(buffer);
  tables_.forget(buffer.address, buffer.address + buffer.granules * config_.granularity);
  statistics_.rounding_waste_bytes.subtract(buffer.granules * config_.granularity - buffer.bytes);
  statistics_.remove_live(buffer.bytes);
  statistics_.frees.add();
  live_[buffer.live_index] = live_.back();
  live_[buffer.live_index]->live_index = buffer.live_index;
  live_.pop_back();

  if (!holds(Clause::kParkKeepsFence)) fence.clear();
  if (holds(Clause::kParkHoldsFill)) fence.add(buffer.fill);
  bool whole = true;
  for (const Piece& piece : buffer.pieces) whole = whole && piece.state != PieceState::kHost;
  if (!whole) {
    dissolve(buffer, fence);
    return true;
  }
  if (buffer.held != 0 && holds(Clause::kFreedIsHeld)) {
    buffer.parked = std::move(fence);
    buffer.state.store(BufferState::kHeld, std::memory_order_release);
    freed_held_.push_back(&buffer);
    return true;
  }
  park(buffer, std::move(fence));
  return true;
}

void Engine::park(Buffer& buffer, Fence fence) {
  buffer.held = 0;
  buffer.parked = std::move(fence);
  buffer.state.store(BufferState::kParked, std::memory_order_release);
  statistics_.parked_bytes.add(buffer.granules * config_.granularity);
  parking_.put(&buffer);
  if (waiting_.load(std::memory_order_relaxed) != 0) changed_.notify_all();
}

// A buffer that no longer is comes apart: extents and slots go back behind their fences, the
// address to the worker.
void Engine::dissolve(Buffer& buffer, const Fence& fence) {
  AddressJob job;
  job.address = buffer.address;
  job.granules = buffer.granules;
  job.fence = fence;
  for (Piece& piece : buffer.pieces) {
    const Address at = address_of(buffer, piece);
    const uint64_t bytes = bytes_of(piece);
    if (piece.state != PieceState::kHost) {
      ++piece.extent->shown_elsewhere;
      put_back(piece.extent, fence);
      job.shown.push_back({at, bytes, piece.extent, nullptr});
      continue;
    }
    statistics_.host_bytes.subtract(bytes);
    job.fence.add(piece.leave);
    if (piece.shown != nullptr) job.shown.push_back({at, bytes, piece.shown, nullptr});
    if (!holds(Clause::kFreedSlotWaits)) piece.copied.clear();
    if (piece.slot->mapped) {
      piece.slot->fence = piece.copied;
      job.shown.push_back({at, bytes, nullptr, piece.slot});
    } else {
      slots_.put(piece.slot, piece.copied);
    }
  }
  window_.hide(buffer.address, buffer.granules);
  buffer.state.store(BufferState::kGone, std::memory_order_release);
  buffer.held = 0;
  buffer.pieces.clear();
  buffer.fill.clear();
  buffer.parked.clear();
  buffer.next = recycled_;
  recycled_ = &buffer;
  leave_address(std::move(job));
}

// The worker asks events, so they are recorded here.
void Engine::leave_address(AddressJob job) {
  for (const Point& point : job.fence) streams_.mark(point.stream);
  if (!holds(Clause::kAddressWaitsUnmap)) window_.give_back(job.address, job.granules);
  address_jobs_.push_back(own_new<AddressJob>(std::move(job)));
  work_.notify_one();
}

}  // namespace offload
