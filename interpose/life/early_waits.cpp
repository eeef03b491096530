// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/early_waits.h"

#include <mutex>

#include "interpose/driver/own_call.h"
#include "interpose/driver/table.h"
#include "interpose/graphs/captures.h"
#include "interpose/life/not_cancelled.h"
#include "interpose/life/thread_state.h"

namespace offload {
namespace {

constexpr uint32_t kMostStreams = 64;

struct EarlyWait {
  CUcontext context = nullptr;  // null: free
  unsigned long long stream_id = 0;
  CUevent event = nullptr;
};

constinit std::mutex changing;
constinit EarlyWait early[kMostStreams];

bool passed(const EarlyWait& wait) {
  return real<Entry::cuEventQuery>()(wait.event) != CUDA_ERROR_NOT_READY;
}

// The one of this stream, or one that nobody needs; null: there is none.
EarlyWait* place_for(CUcontext context, unsigned long long id) {
  EarlyWait* place = nullptr;
  for (EarlyWait& each : early) {
    if (each.context == context && each.stream_id == id) return &each;
    if (place == nullptr && each.context == nullptr) place = &each;
  }
  for (uint32_t i = 0; i < kMostStreams && place == nullptr; ++i) {
    if (early[i].context != context || !passed(early[i])) continue;
    place = &early[i];
  }
  return place;
}

}  // namespace

void note_early_wait(CUstream stream, bool per_thread_entry) {
  if (this_thread.inside) return;
  if (stream == nullptr) stream = per_thread_entry ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  CUcontext context = current_context();
  if (stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD &&
      real<Entry::cuStreamGetCtx>()(stream, &context) != CUDA_SUCCESS)
    return;
  if (context == nullptr) return;
  const NotCancelled not_cancelled;
  const OwnCall call(context);
  unsigned long long id = 0;
  if (look_at(stream).kind != CaptureState::Kind::kNone ||
      real<Entry::cuStreamGetId>()(stream, &id) != CUDA_SUCCESS)
    return;
  const std::lock_guard lock(changing);
  EarlyWait* wait = place_for(context, id);
  if (wait == nullptr) return;
  if (wait->context == nullptr &&
      real<Entry::cuEventCreate>()(&wait->event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
    return;
  wait->context = context;
  wait->stream_id = id;
  real<Entry::cuEventRecord>()(wait->event, stream);
}

OwnVector<Engine::Waiting> early_waits() {
  const std::lock_guard lock(changing);
  OwnVector<Engine::Waiting> pending;
  for (const EarlyWait& each : early) {
    if (each.context != nullptr && !passed(each)) pending.push_back({each.event, each.context});
  }
  return pending;
}

void forget_early_waits(CUcontext context) {
  const std::lock_guard lock(changing);
  for (EarlyWait& each : early) {
    if (each.context == context) each = {};
  }
}

}  // namespace offload
