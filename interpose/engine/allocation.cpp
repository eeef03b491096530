// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "interpose/engine/engine.h"

namespace offload {

namespace {
// Adds to a sum of what is under way, as long as it lives.
class Counted {
 public:
  Counted(uint64_t& sum, uint64_t granules) : sum_(sum), granules_(granules) { sum_ += granules_; }
  ~Counted() { sum_ -= granules_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  uint64_t& sum_;
  const uint64_t granules_;
};
}  // namespace

Status Engine::allocate(uint64_t bytes, ThreadPins* pins, Address* out) {
  return allocate_on(bytes, kNoStream, pins, out);
}

Status Engine::allocate_async(uint64_t bytes, StreamIndex stream, ThreadPins* pins, Address* out) {
  return allocate_on(bytes, stream, pins, out);
}

Status Engine::allocate_on(uint64_t bytes, StreamIndex stream, ThreadPins* pins, Address* out) {
  Lock lock(mutex_);
  const Request request(*this, pins);
  statistics_.allocations.add();
  count_ops();
  const Status status = bytes < config_.min_size_bytes
                            ? allocate_small(bytes, stream, pins, lock, out)
                            : allocate_large(bytes, stream, pins, lock, out);
  if (status == Status::kOk) {
    statistics_.add_live(bytes);
  } else {
    statistics_.allocations_refused.add();
  }
  return status;
}

// Nothing behind an external flag is waited for: then memory goes only to those who are behind it
// already.
bool Engine::usable_now(const Fence& fence, StreamIndex stream) {
  return std::all_of(fence.begin(), fence.end(), [&](const Point& point) {
    return (stream != kNoStream && streams_.knows(stream, point)) || streams_.passed(point);
  });
}

// The new owner's stream waits for the old owner's fence. Without a stream, the first use of a
// large buffer does (fill); a block of a slab is not named, so everybody who might use it waits
// now. Once retired, uses are not seen.
void Engine::order_new_owner(const Fence& fence, StreamIndex stream, Lock& lock) {
  if (stream != kNoStream) {
    streams_.wait(stream, fence);
    // Whoever waits for all that was submitted waits for that, too.
    if (holds(Clause::kAllocationHasPosition)) streams_.here(stream);
    return;
  }
  // Of another thread's per-thread stream nothing can be made to wait, so the host does.
  bool on_host = retired();
  for (StreamIndex user = 2; user < streams_.count(); ++user) {
    on_host = on_host || (streams_.live(user) && streams_.per_thread(user));
  }
  if (on_host) return wait_on_host(fence, HostWait::former_owner, lock);
  for (StreamIndex user = 2; user < streams_.count(); ++user) {
    if (streams_.live(user)) streams_.wait(user, fence);
  }
  streams_.passed(given_out_);
  given_out_.add(fence);
}

Status Engine::allocate_small(uint64_t bytes, StreamIndex stream, ThreadPins* pins, Lock& lock,
                              Address* out) {
  const uint32_t size_class = Slabs::class_of(bytes);
  const uint64_t block_bytes = Slabs::class_bytes(size_class);
  BlockAt at;
  const auto flagged = [&] {
    return holds(Clause::kFlagKeepsBlocks) && streams_.external_wait_pending();
  };
  while (
      !slabs_.take(
          size_class, [&](const Block& block) { return usable_now(block.fence, stream); }, &at) ||
      (flagged() && !usable_now(at.block().fence, stream))) {
    if (at.slab != nullptr) slabs_.put(at);
    at = BlockAt{};
    const uint32_t granules =
        Slabs::slab_granules(block_bytes, config_.granularity, extents_.largest());
    OwnVector<Extent*> extents;
    const Room room = may_grow(granules, true, lock);
    if (room == Room::kWaited) continue;
    if (room == Room::kNone) return Status::kOutOfMemory;
    const Counted counted(slabs_to_come_, granules);
    if (!take_extents(granules, pins, lock, &extents)) return Status::kOutOfMemory;
    Fence fence;
    for (const Extent* extent : extents) fence.add(extent->fence);
    const Address address = window_.take(granules);
    if (address == 0 || !map_all(address, granules, extents, lock)) {
      for (Extent* extent : extents) put_back(extent, extent->fence);
      return Status::kOutOfMemory;
    }
    Slab* slab = slabs_.add(size_class, address, granules, std::move(extents),
                            granules * config_.granularity, fence);
    window_.show_slab(address, granules, slab);
  }
  Block& block = at.block();
  block.bytes = bytes;
  block.id = next_id_++;
  block.birth_op = streams_.ops();
  block.stream_ordered = stream != kNoStream;
  *out = at.address();
  statistics_.rounding_waste_bytes.add(block_bytes - bytes);
  // The block keeps its fence, as a buffer keeps its fill: who frees it knows of its own work only.
  if (!streams_.passed(block.fence)) order_new_owner(Fence(block.fence), stream, lock);
  relieve_pressure(lock);
  return Status::kOk;
}

// All or nothing; without it, the address is given back.
bool Engine::map_all(Address address, uint32_t granules, const OwnVector<Extent*>& extents,
                     Lock& lock) {
  AddressJob undo;  // what the driver would not unmap again is the worker's
  undo.address = address;
  undo.granules = granules;
  const bool mapped = without_mutex(lock, [&] {
    Address at = address;
    for (size_t i = 0; i < extents.size(); ++i) {
      const uint64_t bytes = extents_.bytes_of(*extents[i]);
      if (timed_map(at, bytes, extents[i]->handle, Place::kDevice) == Status::kOk) {
        at += bytes;
        continue;
      }
      statistics_.driver_errors.add();
      while (i-- > 0) {
        at -= extents_.bytes_of(*extents[i]);
        if (timed_unmap(at, extents_.bytes_of(*extents[i])) == Status::kOk) continue;
        undo.shown.push_back({at, extents_.bytes_of(*extents[i]), extents[i], nullptr});
      }
      return false;
    }
    return true;
  });
  if (mapped) return true;
  for (const AddressJob::Shown& shown : undo.shown) ++shown.extent->shown_elsewhere;
  if (undo.shown.empty()) {
    window_.give_back(address, granules);
  } else {
    leave_address(std::move(undo));
  }
  return false;
}

Buffer* Engine::new_buffer() {
  if (recycled_ == nullptr) return own_new<Buffer>();
  Buffer* buffer = recycled_;
  recycled_ = buffer->next;
  buffer->next = nullptr;
  return buffer;
}

Status Engine::allocate_large(uint64_t bytes, StreamIndex stream, ThreadPins* pins, Lock& lock,
                              Address* out) {
  if (bytes > std::min(extents_.limit_bytes(), window_.bytes())) return Status::kOutOfMemory;
  const uint64_t needed = (bytes + config_.granularity - 1) / config_.granularity;
  const auto granules = static_cast<uint32_t>(needed);

  Room room = Room::kWaited;
  while (room == Room::kWaited) room = may_grow(granules, false, lock);
  if (room == Room::kNone) return Status::kOutOfMemory;
  Buffer* buffer = parking_.take(
      granules, [&](const Buffer& parked) { return usable_now(parked.parked, stream); });
  if (buffer != nullptr && holds(Clause::kFlagKeepsParked) && streams_.external_wait_pending() &&
      !usable_now(buffer->parked, stream)) {
    parking_.put(buffer);
    buffer = nullptr;
  }
  if (buffer != nullptr) {
    statistics_.parked_hits.add();
    statistics_.parked_bytes.subtract(buffer->granules * config_.granularity);
    buffer->fill = std::move(buffer->parked);
    buffer->parked.clear();
  } else {
    OwnVector<Extent*> extents;
    if (!take_extents(granules, pins, lock, &extents)) return Status::kOutOfMemory;
    const Address address = window_.take(granules);
    if (address == 0 || !map_all(address, granules, extents, lock)) {
      for (Extent* extent : extents) {
        put_back(extent, holds(Clause::kFailedMapKeepsFence) ? Fence(extent->fence) : Fence());
      }
      return Status::kOutOfMemory;
    }
    buffer = new_buffer();
    buffer->address = address;
    buffer->granules = granules;
    buffer->fill.clear();
    uint64_t offset = 0;
    for (Extent* extent : extents) {
      Piece piece;
      piece.granules = extent->granules;
      piece.offset = offset;
      piece.extent = piece.shown = extent;
      piece.serial = next_serial_++;
      extent->owner = buffer;
      extent->piece = static_cast<uint32_t>(buffer->pieces.size());
      buffer->fill.add(extent->fence);
      extent->fence.clear();
      offset += extents_.bytes_of(*extent);
      buffer->pieces.push_back(std::move(piece));
    }
    window_.show_buffer(address, granules, buffer);
  }
  born(*buffer, bytes, stream, lock);
  *out = buffer->address;
  relieve_pressure(lock);
  return Status::kOk;
}

void Engine::born(Buffer& buffer, uint64_t bytes, StreamIndex stream, Lock& lock) {
  buffer.bytes = bytes;
  buffer.id = next_id_++;
  buffer.birth_op = streams_.ops();
  buffer.stream_ordered = stream != kNoStream;
  buffer.kept = 0;
  buffer.moved_bytes = 0;
  buffer.last_op.store(0, std::memory_order_relaxed);
  buffer.names_others.store(false, std::memory_order_relaxed);
  buffer.use_overflow.store(false, std::memory_order_relaxed);
  for (std::atomic<uint64_t>& use : buffer.use) use.store(0, std::memory_order_relaxed);
  buffer.waited.store(0, std::memory_order_relaxed);
  if (!buffer.fill.empty() && holds(Clause::kUserWaitsFill)) {
    if (retired() || stream != kNoStream) order_new_owner(buffer.fill, stream, lock);
    streams_.passed(buffer.fill);
  }
  if (stream < 64) buffer.waited.store(uint64_t{1} << stream, std::memory_order_relaxed);
  if (buffer.fill.empty()) buffer.waited.store(~uint64_t{0}, std::memory_order_relaxed);
  buffer.live_index = static_cast<uint32_t>(live_.size());
  live_.push_back(&buffer);
  statistics_.rounding_waste_bytes.add(buffer.granules * config_.granularity - bytes);
  buffer.state.store(BufferState::kResident, std::memory_order_release);
}

}  // namespace offload
