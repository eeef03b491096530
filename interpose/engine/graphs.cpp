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
  if (!added->add({&buffer, buffer.id})) return false;
  ++buffer.held;
  return true;
}

// All of it counts as held already, so that one does not leave for the other.
Status Engine::bring_home(const GraphHold& added, ThreadPins& pins, Lock& lock) {
  for (const GraphHold::Held& each : added) {
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

Status Engine::hold(ThreadPins& pins, GraphHold* hold) {
  Lock lock(mutex_);
  begin_request(&pins);
  pins.publish();
  GraphHold added;
  for (uint32_t i = 0; i < pins.collected; ++i) hold_one(*pins.at(i), &added);
  if (pins.overflow.load(std::memory_order_relaxed)) {
    for (Buffer* buffer : live_) hold_one(*buffer, &added);
  }
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
    if (each.buffer->id != each.id || each.buffer->held == 0) continue;
    if (to->add(each)) ++each.buffer->held;
  }
}

void Engine::release_one(const GraphHold::Held& held) {
  Buffer& buffer = *held.buffer;
  if (buffer.id != held.id || buffer.held == 0 || --buffer.held != 0) return;
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
