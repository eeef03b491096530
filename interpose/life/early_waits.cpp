// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/early_waits.h"

#include <mutex>
#include <utility>

#include "interpose/driver/own_call.h"
#include "interpose/driver/table.h"
#include "interpose/engine/edges.h"
#include "interpose/graphs/captures.h"
#include "interpose/life/not_cancelled.h"
#include "interpose/life/sessions.h"

namespace offload {
namespace {

constexpr uint32_t kMostStreams = 64;

struct EarlyWait {
  CUcontext context = nullptr;  // null: free
  unsigned long long stream_id = 0;
  CUevent event = nullptr;
  uint32_t recording = 0;  // threads that are about to record the event
};

constinit PlainMutex changing;  // held across no call that may block
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
    if (early[i].context != context || early[i].recording != 0 || !passed(early[i])) continue;
    place = &early[i];
  }
  return place;
}

// The stream's event, to be recorded now; it may have to be made. Null: it is not followed.
CUevent begin_recording(CUcontext context, unsigned long long id) {
  CUevent event = nullptr;
  CUevent made = nullptr;
  for (bool again = true; again;) {
    again = false;
    {
      const std::lock_guard lock(changing);
      if (EarlyWait* wait = place_for(context, id); wait != nullptr) {
        if (wait->event == nullptr) wait->event = std::exchange(made, nullptr);
        event = wait->event;
        if (event != nullptr) *wait = {context, id, event, wait->recording + 1};
        again = event == nullptr;
      }
    }
    if (again && real<Entry::cuEventCreate>()(&made, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
      return nullptr;
  }
  if (made != nullptr) real<Entry::cuEventDestroy_v2>()(made);
  return event;
}

// Unless the context died meanwhile.
void end_recording(CUcontext context, CUevent event) {
  const std::lock_guard lock(changing);
  for (EarlyWait& each : early) {
    if (each.context == context && each.event == event && each.recording != 0) --each.recording;
  }
}

Engine::Waiting record_behind(CUstream stream, CUcontext context) {
  const OwnCall call(context);
  unsigned long long id = 0;
  if (look_at(stream).kind != CaptureState::Kind::kNone ||
      real<Entry::cuStreamGetId>()(stream, &id) != CUDA_SUCCESS)
    return {};
  const CUevent event = begin_recording(context, id);
  if (event == nullptr) return {};
  real<Entry::cuEventRecord>()(event, stream);  // which waits where the stream's queue is full
  end_recording(context, event);
  return {event, context};
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
  const Engine::Waiting waiting = record_behind(stream, context);
  if (waiting.event == nullptr) return;
  // A device that came to be managed meanwhile may have looked too early.
  for_each_session([&](Session& each) { each.engine.external_wait_before(waiting); });
}

OwnVector<Engine::Waiting> early_waits(bool* opening) {
  const std::lock_guard lock(changing);
  OwnVector<Engine::Waiting> pending;
  *opening = false;
  for (const EarlyWait& each : early) {
    if (each.context == nullptr) continue;
    if (!passed(each)) {
      pending.push_back({each.event, each.context});
    } else if (each.recording != 0) {
      *opening = true;
    }
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
