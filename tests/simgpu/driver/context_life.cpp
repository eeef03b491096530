// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/driver/context_life.h"

#include <utility>

#include "tests/simgpu/driver/objects.h"
#include "tests/simgpu/driver/peers.h"
#include "tests/simgpu/exec/capture.h"
#include "tests/simgpu/exec/engine.h"
#include "tests/simgpu/exec/graph_exec.h"
#include "tests/simgpu/memory/address_space.h"
#include "tests/simgpu/memory/heap.h"
#include "tests/simgpu/memory/host_blocks.h"

namespace simgpu {

namespace {

Context*& primary(CUdevice device) {
  static Context* all[kMaxDevices] = {};
  return all[device];
}

}  // namespace

Context* make_context(Lock& lock, CUdevice device, unsigned flags, Context* of) {
  static uint64_t last_id = 0;
  Context* context = contexts().create();
  context->device = device;
  context->flags = flags;
  context->primary_of = of;
  context->id = ++last_id;
  context->limits[CU_LIMIT_STACK_SIZE] = 1024;
  context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 8 << 20;
  context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
  context->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
  context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
  Stream* legacy = engine().create_stream(lock, context, CU_STREAM_DEFAULT, 0);
  legacy->legacy = true;
  context->legacy = legacy;
  return context;
}

void end_context(Lock& lock, Context* context) {
  contexts().for_each([&](Context& green) {
    if (green.primary_of == context) end_context(lock, &green);
  });
  engine().synchronize(lock, engine().all_work(context), "the end of a context");
  stream_handles().for_each([&](StreamHandle& entry) {
    if (entry.stream == nullptr || entry.stream->context != context) return;
    captures::leave(*entry.stream);
    engine().retire_stream(lock, entry.stream);
    if (context->primary_of != nullptr) {
      entry.stream = nullptr;
    } else {
      stream_handles().destroy(&entry);
    }
  });
  graph_execs::leave_context(lock, context);
  event_handles().for_each([&](EventHandle& entry) {
    if (entry.context == context) event_handles().destroy(&entry);
  });
  for (Mapping* mapping : address_space().owned_by(context)) {
    if (mapping->kind == MemoryKind::kHeap) {
      heap::free(mapping);
    } else {
      host_blocks::free_any(mapping);
    }
  }
  peers::forget(context);
  // The default stream is left behind: points in it may still be referred to.
  contexts().destroy(context);
}

Context* find_green(CUgreenCtx green) {
  Context* found = contexts().find(green);
  return found != nullptr && found->primary_of != nullptr ? found : nullptr;
}

CUgreenCtx green_handle(Context* context) {
  return context->primary_of != nullptr ? reinterpret_cast<CUgreenCtx>(context) : nullptr;
}

Context* primary_context(CUdevice device) {
  return primary(device);
}

unsigned& primary_flags(CUdevice device) {
  static unsigned all[kMaxDevices] = {};
  return all[device];
}

Context* retain_primary(Lock& lock, CUdevice device) {
  Context*& mine = primary(device);
  if (mine == nullptr) {
    mine = make_context(lock, device, primary_flags(device));
    mine->primary = true;
  }
  ++mine->retained;
  return mine;
}

bool release_primary(Lock& lock, CUdevice device) {
  Context* mine = primary(device);
  if (mine == nullptr || mine->retained == 0) return false;
  if (--mine->retained == 0) reset_primary(lock, device);
  return true;
}

void reset_primary(Lock& lock, CUdevice device) {
  Context* ending = std::exchange(primary(device), nullptr);
  if (ending != nullptr) end_context(lock, ending);
}

}  // namespace simgpu
