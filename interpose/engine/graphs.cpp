// SPDX-License-Identifier: Apache-2.0
// What a graph names stays where it is while the graph lives, freed or not; and streams that
// capture are left alone.

#include <algorithm>

#include "interpose/engine/engine.h"

namespace offload {

void Engine::freeze(StreamIndex stream) {
  const Lock lock(mutex_);
  streams_.freeze(stream);
}

void Engine::thaw(StreamIndex stream) {
  const Lock lock(mutex_);
  streams_.thaw(stream);
}

bool Engine::frozen(StreamIndex stream) {
  const Lock lock(mutex_);
  return streams_.frozen(stream);
}

OwnVector<StreamIndex> Engine::list_frozen() {
  const Lock lock(mutex_);
  OwnVector<StreamIndex> all;
  for (StreamIndex stream = 2; stream < streams_.count(); ++stream) {
    if (streams_.frozen(stream)) all.push_back(stream);
  }
  return all;
}

// False: it is no live allocation (a phantom), or counted already.
bool Engine::hold_one(Buffer& buffer, GraphHold* added) {
  const BufferState state = buffer.state.load(std::memory_order_relaxed);
  if (state != BufferState::kResident && state != BufferState::kMoving) return false;
  if (!added->add({&buffer, 0, buffer.id})) return false;
  ++buffer.held;
  return true;
}

// Blocks never move; held, they are not given to others.
void Engine::hold_blocks(std::span<const Address> words, GraphHold* added) {
  constexpr size_t kMostWords = 1 << 16;  // of tables, and tables of tables
  OwnVector<Address> all(words.begin(), words.end());
  OwnMap<Address, bool> seen;
  for (size_t i = 0; i < all.size(); ++i) {
    const Address word = all[i];
    Slab* slab = window_.slab_at(word);
    BlockAt at;
    if (slab != nullptr && Slabs::find_taken(*slab, word, &at) && at.block().live &&
        added->add({nullptr, at.address(), at.block().id})) {
      ++at.block().held;
    }
    if (all.size() < kMostWords && seen.emplace(word, true).second)
      tables_.read(word, window_.reach(word, Tables::kLargest), &all);
  }
}

bool Engine::find_block(const GraphHold::Held& held, BlockAt* out) const {
  Slab* slab = window_.slab_at(held.block);
  return slab != nullptr && Slabs::find_taken(*slab, held.block, out) &&
         out->block().id == held.id && out->block().held != 0;
}

// Null: it is not held any more.
uint32_t* Engine::holders_of(const GraphHold::Held& held) {
  if (held.buffer == nullptr) {
    BlockAt at;
    return find_block(held, &at) ? &at.block().held : nullptr;
  }
  Buffer& buffer = *held.buffer;
  return buffer.id == held.id && buffer.held != 0 ? &buffer.held : nullptr;
}

// Whether a graph names the allocation.
bool Engine::is_held(Address base) {
  if (Slab* slab = window_.slab_at(base); slab != nullptr) {
    const BlockAt at = Slabs::find(*slab, base);
    return at.index < slab->blocks.size() && at.block().held != 0;
  }
  const Buffer* buffer = window_.buffer_at(base);
  return buffer != nullptr && buffer->held != 0;
}

// All of it counts as held already, so that one does not leave for the other.
Status Engine::bring_home(const GraphHold& added, ThreadPins& pins, Lock& lock) {
  for (const GraphHold::Held& each : added) {
    if (each.buffer == nullptr) continue;
    Buffer& buffer = *each.buffer;
    for (;;) {
      // The mutex may have been let go: freed, and another by now.
      if (buffer.id != each.id || buffer.held == 0) break;
      const Status status = restore(buffer, &pins, lock);
      if (status == Status::kNotReady) continue;
      if (status != Status::kOk) return status;
      wait_for_content(buffer, lock);
      if (buffer.id != each.id || !streams_.passed(buffer.fill)) break;
      buffer.waited.store(~uint64_t{0}, std::memory_order_release);
      break;
    }
  }
  return Status::kOk;
}

Status Engine::hold(ThreadPins& pins, GraphHold* hold, std::span<const Address> words) {
  Lock lock(mutex_);
  const Request request(*this, &pins);
  pins.publish();
  GraphHold added;
  for (uint32_t i = 0; i < pins.collected; ++i) hold_one(*pins.at(i), &added);
  if (pins.overflow.load(std::memory_order_relaxed)) {
    for (Buffer* buffer : live_) hold_one(*buffer, &added);
  }
  hold_blocks(words, &added);
  const Status status = bring_home(added, pins, lock);
  for (const GraphHold::Held& each : added) {
    if (status != Status::kOk || !hold->add(each)) release_one(each);
  }
  pins.clear();
  return status;
}

void Engine::hold_also(const GraphHold& from, GraphHold* to) {
  const Lock lock(mutex_);
  for (const GraphHold::Held& each : from) {
    uint32_t* const holders = holders_of(each);
    if (holders != nullptr && to->add(each)) ++*holders;
  }
}

// What is launched may still use it; which streams did is not known of blocks.
void Engine::release_block(Address at) {
  const BlockAt freed = Slabs::find(*window_.slab_at(at), at);
  if (freed.block().live) return;
  if (holds(Clause::kHeldGoesBehindUse)) freed.block().fence.add(everything_submitted());
  slabs_.put(freed);
}

void Engine::release_one(const GraphHold::Held& held) {
  uint32_t* const holders = holders_of(held);
  if (holders == nullptr || --*holders != 0) return;
  if (held.buffer == nullptr) return release_block(held.block);
  Buffer& buffer = *held.buffer;
  if (buffer.state.load(std::memory_order_relaxed) != BufferState::kHeld) return;
  std::erase(freed_held_, &buffer);
  Fence fence = std::move(buffer.parked);
  if (holds(Clause::kHeldGoesBehindUse)) fence.add(use_fence(buffer));
  park(buffer, std::move(fence));
}

void Engine::release(GraphHold* hold) {
  const Lock lock(mutex_);
  for (const GraphHold::Held& each : *hold) release_one(each);
  hold->clear();
}

}  // namespace offload
