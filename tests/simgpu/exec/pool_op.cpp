// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/pool_op.h"

#include "tests/simgpu/check/checker.h"
#include "tests/simgpu/exec/engine.h"
#include "tests/simgpu/exec/stream.h"
#include "tests/simgpu/memory/address_space.h"
#include "tests/simgpu/memory/heap.h"

namespace simgpu {

void AllocateOp::run(Lock&) {
  Mapping* mapping = address_space().find(address_);
  if (mapping == nullptr || mapping->begin != address_) return;
  // The allocator itself has put this behind the last use.
  if (after_ != nullptr) stream->clock.join(after_->clock);
  mapping->live = true;
  checker().begin(*stream, OpClass::kAllocation, describe());
  checker().allocate({mapping, address_, mapping->span});
}

void FreeOp::run(Lock&) {
  if (Mapping* mapping = address_space().find(address_); mapping && mapping->begin == address_) {
    checker().begin(*stream, OpClass::kFree, describe());
    checker().write({mapping, address_, mapping->span});
    mapping->live = false;
    mapping->uses.clear();
    if (mapping->kind == MemoryKind::kHeap) heap::free(mapping);
  }
  freed_->done = true;
  freed_->time_ns = engine().now_ns();
  freed_->clock = stream->clock;
}

}  // namespace simgpu
