// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "interpose/engine/engine.h"

namespace offload {

namespace {

constexpr uint64_t kMarkEvery = 16;  // ops on a stream, while evicting

bool bit_set(uint64_t mask, StreamIndex stream) {
  return stream < 64 && ((mask >> stream) & 1) != 0;
}

}  // namespace

void Engine::name_entry(ThreadPins& pins, PageEntry entry, Address address) const {
  const bool in_slab = entry == Window::tables();
  if (!in_slab) {
    pins.add(entry);
    if (!entry->names_others.load(std::memory_order_relaxed)) return;
  }
  tables_.name(pins, address);
}

void Engine::name_words(ThreadPins& pins, const void* words, size_t bytes) const {
  const auto* at = static_cast<const unsigned char*>(words);
  for (size_t i = 0; i + sizeof(Address) <= bytes; i += sizeof(Address)) {
    Address word;
    std::memcpy(&word, at + i, sizeof(word));
    name(pins, word);
  }
}

Status Engine::begin_op(ThreadPins& pins, StreamIndex stream) {
  if (pins.collected == 0) return Status::kOk;
  edge(Edge::kPublish);
  if (holds(Clause::kPinDuringOp)) pins.publish();
  edge(Edge::kState);
  bool ready = stream < 64 && !pins.overflow.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < pins.collected && ready; ++i) {
    const Buffer& buffer = *pins.at(i);
    const BufferState state = buffer.state.load(std::memory_order_seq_cst);
    ready = state == BufferState::kResident
                ? bit_set(buffer.waited.load(std::memory_order_acquire), stream)
                : state != BufferState::kMoving;  // gone or parked: a phantom
  }
  return ready ? Status::kOk : begin_op_slowly(pins, stream);
}

Status Engine::begin_op_slowly(ThreadPins& pins, StreamIndex stream) {
  Lock lock(mutex_);
  const Request request(*this, &pins);
  if (const Status status = make_resident(pins, lock); status != Status::kOk) {
    pins.clear();
    return status;
  }
  for (uint32_t i = 0; i < pins.collected; ++i) order_behind_fill(*pins.at(i), stream);
  if (pins.overflow.load(std::memory_order_relaxed)) {
    for (Buffer* buffer : live_) order_behind_fill(*buffer, stream);
  }
  relieve_pressure(lock);
  return Status::kOk;
}

// All that is named becomes resident. May drop the pins for a while (rule 5), so it starts over
// until nothing is missing. What is about to leave stays, before room is sought for the rest: that
// spares it the way out and back.
Status Engine::make_resident(ThreadPins& pins, Lock& lock) {
  const auto must_return = [](const Buffer& buffer) {
    if (buffer.state.load(std::memory_order_relaxed) != BufferState::kMoving) return false;
    return holds(Clause::kUseCancels) ||
           std::any_of(buffer.pieces.begin(), buffer.pieces.end(),
                       [](const Piece& piece) { return piece.state == PieceState::kHost; });
  };
  for (bool again = true; again;) {
    again = false;
    stand_aside(&pins, lock);
    for (uint32_t i = 0; i < pins.collected; ++i) {
      if (must_return(*pins.at(i))) cancel(*pins.at(i));
    }
    for (uint32_t i = 0; i < pins.collected; ++i) {
      if (!must_return(*pins.at(i))) continue;
      const Status status = restore(*pins.at(i), &pins, lock);
      if (status == Status::kNotReady) {
        again = true;
        break;
      }
      if (status == Status::kOutOfMemory && !port_.lost()) return use_in_place(pins, lock);
      if (status != Status::kOk) return status;
    }
    // More was named than the list holds: whatever is away may have been.
    for (size_t i = 0; pins.overflow.load(std::memory_order_relaxed) && i < live_.size(); ++i) {
      if (!must_return(*live_[i])) continue;
      const Status status = restore(*live_[i], &pins, lock);
      if (status == Status::kNotReady) again = true;
      if (status != Status::kOk && status != Status::kNotReady) return status;
    }
  }
  return Status::kOk;
}

void Engine::order_behind_fill(Buffer& buffer, StreamIndex stream) {
  // Who goes first may have claimed it since it was found at home (claim_all).
  const BufferState state = buffer.state.load(std::memory_order_relaxed);
  if (state != BufferState::kResident && state != BufferState::kMoving && buffer.in_place == 0)
    return;
  if (bit_set(buffer.waited.load(std::memory_order_relaxed), stream)) return;
  if (holds(Clause::kUserWaitsFill)) streams_.wait(stream, buffer.fill);
  const uint64_t bits = holds(Clause::kEachStreamWaitsFill)
                            ? (stream < 64 ? uint64_t{1} << stream : 0)
                            : ~uint64_t{0};
  buffer.waited.fetch_or(bits, std::memory_order_release);
}

void Engine::end_op(ThreadPins& pins, StreamIndex stream) {
  uint64_t op = 0;
  edge(Edge::kCount);
  if (!holds(Clause::kNoteBeforeUnpin)) pins.withdraw();
  const uint64_t position = streams_.advance(stream, &op);
  edge(Edge::kNote);
  for (uint32_t i = 0; i < pins.collected; ++i) pins.at(i)->note_use(stream, position, op);
  if (pins.in_place) [[unlikely]]
    end_in_place(pins, {stream, position});
  if (pins.overflow.load(std::memory_order_relaxed)) {
    const Lock lock(mutex_);
    for (Buffer* buffer : live_) buffer->note_use(stream, position, op);
  }
  edge(Edge::kDrop);
  pins.clear();
  // Another thread cannot record on a per-thread stream, so its owner leaves an event behind each
  // op, also behind those that name nothing: they may use blocks of slabs. While evicting, an event
  // now and then spares a leaving buffer the wait for everything that was submitted after its last
  // use.
  if (streams_.per_thread(stream) ||
      (pressure_.load(std::memory_order_relaxed) && position % kMarkEvery == 0)) {
    const Lock lock(mutex_);
    streams_.mark(stream, true);
  }
  if (waiting_.load(std::memory_order_relaxed) != 0) changed_.notify_all();
}

void Engine::data_copied(Address to, const void* from, uint64_t bytes) {
  OwnVector<Address> words;
  const auto* at = static_cast<const unsigned char*>(from);
  const auto from_address = reinterpret_cast<Address>(from);
  const bool on_device = owns(from_address);
  if (on_device) tables_.read(from_address, from_address + bytes, &words);
  for (uint64_t i = 0; !on_device && i + sizeof(Address) <= bytes; i += sizeof(Address)) {
    Address word;
    std::memcpy(&word, at + i, sizeof(word));
    if (window_.contains(word)) words.push_back(word);
  }
  if (words.empty()) {
    tables_.forget(to, to + bytes);
    return;
  }
  const Lock lock(mutex_);
  tables_.set(to, to + bytes, std::move(words));
  if (Buffer* holder = window_.buffer_at(to); holder != nullptr) {
    holder->names_others.store(true, std::memory_order_relaxed);
  } else if (window_.slab_at(to) != nullptr) {
    window_.mark_tables(to, bytes);
  }
}

}  // namespace offload
