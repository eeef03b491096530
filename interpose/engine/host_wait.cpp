// SPDX-License-Identifier: Apache-2.0
// Waits of a launching thread for the GPU, counted by their cause; and the timed mapping calls.

#include "interpose/engine/engine.h"

namespace offload {

// The mutex is let go meanwhile. Whoever calls has marked what it relies on as busy, or starts
// over.
void Engine::wait_on_host(Fence fence, HostWait cause, Lock& lock) {
  if (streams_.passed(fence)) return;
  ++let_go_;
  // Who waits for these holds memory, that others may want when they find none. What they wait for
  // stands behind no external flag.
  const bool holds_memory = cause == HostWait::resizing || cause == HostWait::reuse_of_an_address ||
                            cause == HostWait::oversized_operation;
  calls_under_way_ += holds_memory ? 1 : 0;
  const uint64_t begin = port_.now_nanoseconds();
  for (const Point& point : fence) streams_.synchronize(point, lock);
  calls_under_way_ -= holds_memory ? 1 : 0;
  statistics_.waited(cause, port_.now_nanoseconds() - begin);
}

Status Engine::timed_map(Address at, uint64_t bytes, Handle handle, Place place) {
  const uint64_t begin = port_.now_nanoseconds();
  const Status status = port_.map(at, bytes, handle, place, false);
  statistics_.remaps.add();
  statistics_.remap_ns.add(port_.now_nanoseconds() - begin);
  return status;
}

Status Engine::timed_unmap(Address at, uint64_t bytes) {
  const uint64_t begin = port_.now_nanoseconds();
  const Status status = port_.unmap(at, bytes);
  statistics_.remaps.add();
  statistics_.remap_ns.add(port_.now_nanoseconds() - begin);
  if (status != Status::kOk) statistics_.driver_errors.add();
  return status;
}

}  // namespace offload
