// SPDX-License-Identifier: Apache-2.0
#include "interpose/graphs/captures.h"

#include <mutex>
#include <utility>

#include "interpose/driver/own_call.h"
#include "interpose/driver/table.h"
#include "interpose/engine/edges.h"
#include "interpose/graphs/captured_memory.h"
#include "interpose/life/sessions.h"
#include "interpose/rules.h"

namespace offload {

constinit std::atomic<uint32_t> captures_watched_{0};

namespace {

constexpr size_t kMost = 64;

struct OpenCapture {
  CUstream stream = nullptr;  // null: none
  CUcontext context = nullptr;
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  bool owns_graph = false;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  const ThreadState* thread = nullptr;
};

// Below the engine's mutex in no order: neither is held while the other is taken.
constinit PlainMutex mutex;
constinit OpenCapture open[kMost]{};
constinit uint32_t open_count = 0;
constinit uint32_t uncounted = 0;  // more than fit: never forgotten
constinit uint32_t under_way = 0;  // calls that may begin one

void watch() {
  uint32_t frozen = 0;
  for_each_session([&](const Session& each) { frozen += each.engine.frozen_streams(); });
  const uint32_t now = open_count + uncounted + under_way + frozen;
  const uint32_t before = captures_watched_.exchange(now, std::memory_order_relaxed);
  if ((now != 0) != (before != 0))
    operations_look_.fetch_add(now != 0 ? 1 : ~0u, std::memory_order_relaxed);
}

bool blocking(CUstream stream) {
  unsigned flags = 0;
  return real<Entry::cuStreamGetFlags>()(stream, &flags) == CUDA_SUCCESS &&
         (flags & CU_STREAM_NON_BLOCKING) == 0;
}

// In every engine that follows it.
void freeze(CUstream stream) {
  for_each_session([stream](Session& each) {
    const StreamIndex index = each.stream(stream, false);
    if (is_followed(index)) each.engine.freeze(index);
  });
}

// Of the stream's context, whichever is current.
void freeze_default_stream(CUstream of) {
  CUcontext context = current_context();
  if (of != CU_STREAM_PER_THREAD && real<Entry::cuStreamGetCtx>()(of, &context) != CUDA_SUCCESS)
    return;
  if (context == current_context()) return freeze(CU_STREAM_LEGACY);
  const OwnCall call(context, OwnCall::Kind::kSubmits);
  this_thread.inside = false;  // freeze() looks at the sessions
  freeze(CU_STREAM_LEGACY);
  this_thread.inside = true;
}

// The special handles mean something in their context only, and the thread's own stream can be
// asked about by its thread alone.
void thaw_all(Session& active) {
  for (const StreamIndex index : active.engine.list_frozen()) {
    const NativeStream native = active.engine.native(index);
    const auto stream = static_cast<CUstream>(native.stream);
    if (stream == CU_STREAM_PER_THREAD) continue;
    const OwnCall call(static_cast<CUcontext>(native.context), OwnCall::Kind::kSubmits);
    if (look_at(stream).kind == CaptureState::Kind::kNone) active.engine.thaw(index);
  }
}

bool over(const OpenCapture& capture) {
  if (capture.stream == CU_STREAM_PER_THREAD && capture.thread != &this_thread) return false;
  const CaptureState state = look_at(capture.stream);
  if (state.kind == CaptureState::Kind::kActive) return state.id != capture.id;
  return state.kind == CaptureState::Kind::kNone;
}

// Forgets the captures for which `gone` is true, and what their graphs named, which went with them.
template <typename Gone>
void forget_captures(Gone&& gone) {
  OpenCapture ended[kMost];
  size_t count = 0;
  {
    const std::lock_guard lock(mutex);
    for (OpenCapture& capture : open) {
      if (capture.stream == nullptr || !gone(capture)) continue;
      ended[count++] = capture;
      capture = {};
      --open_count;
    }
    watch();
  }
  for (size_t i = 0; i < count; ++i) {
    if (ended[i].owns_graph) captured_memory_lost(ended[i].id);
  }
  Session* first = session();
  for (size_t i = 0; i < count && first != nullptr; ++i) {
    if (ended[i].owns_graph) GraphNames::release(first->graphs.take(ended[i].graph));
  }
}

// Streams that have left a capture are used again.
void look_around() {
  for_each_session(thaw_all);
  const std::lock_guard lock(mutex);
  watch();
}

}  // namespace

CaptureState look_at(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CaptureState state;
  const CUresult result = real<Entry::cuStreamGetCaptureInfo_v2>()(stream, &status, &state.id,
                                                                   &state.graph, nullptr, nullptr);
  if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) {
    state.kind = CaptureState::Kind::kRefuses;
  } else if (result == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
    state.kind = CaptureState::Kind::kRefuses;
  } else if (result == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    state.kind = CaptureState::Kind::kActive;
  }
  return state;
}

MayCapture::MayCapture(CUstream stream) : stream_(stream) {
  {
    const std::lock_guard lock(mutex);
    ++under_way;
    watch();
  }
  if (session() == nullptr || look_at(stream).kind != CaptureState::Kind::kNone) return;
  freeze(stream);
  // The default stream waits for blocking streams, and must not meet one that captures.
  if (stream != CU_STREAM_LEGACY && blocking(stream) && obeys(Rule::kDefaultStreamFreezes))
    freeze_default_stream(stream);
}

MayCapture::~MayCapture() {
  {
    const std::lock_guard lock(mutex);
    --under_way;
  }
  if (session() != nullptr && look_at(stream_).kind == CaptureState::Kind::kNone)
    stream_is_free(stream_);
  look_around();
}

void capture_began(CUstream stream, CUstreamCaptureMode mode, bool owns_graph) {
  const CaptureState state = look_at(stream);
  const std::lock_guard lock(mutex);
  for (OpenCapture& free : open) {
    if (free.stream != nullptr) continue;
    free = {stream, current_context(), state.id, state.graph, owns_graph, mode, &this_thread};
    ++open_count;
    return;
  }
  ++uncounted;
}

EndCapture::EndCapture(CUstream stream) {
  {
    const std::lock_guard lock(mutex);
    for (const OpenCapture& capture : open) {
      const bool mine = stream != CU_STREAM_PER_THREAD || capture.thread == &this_thread;
      if (capture.stream != stream || !mine) continue;
      id_ = capture.id;
      if (capture.owns_graph) graph_ = capture.graph;
    }
  }
  Session* first = session();
  if (first == nullptr || graph_ == nullptr) return;
  graphs_ = &first->graphs;
  taken_ = graphs_->take(graph_);
}

void EndCapture::ended(CUgraph graph) {
  bool goes_on = false;
  for (OpenCapture& capture : open) {
    OpenCapture looked;
    {
      const std::lock_guard lock(mutex);
      looked = capture;
    }
    if (looked.stream == nullptr) continue;
    if (!over(looked)) {
      goes_on = goes_on || looked.id == id_;
      continue;
    }
    const std::lock_guard lock(mutex);
    if (capture.stream != looked.stream || capture.id != looked.id) continue;
    capture = {};
    --open_count;
  }
  // A graph that is the program's own keeps the nodes of a capture that failed.
  if (!goes_on && graph == nullptr && graph_ != nullptr) captured_memory_lost(id_);
  if (graphs_ != nullptr) {
    if (graph != nullptr || goes_on) {
      graphs_->put_back(graph != nullptr ? graph : graph_, std::move(taken_));
    } else {
      GraphNames::release(std::move(taken_));
    }
  }
  look_around();
}

void captured_stream_destroyed(CUstream stream) {
  forget_captures([stream](const OpenCapture& capture) { return capture.stream == stream; });
  look_around();
}

void captured_context_died(CUcontext context) {
  forget_captures([context](const OpenCapture& capture) { return capture.context == context; });
}

void note_capture_mode(CUstreamCaptureMode mode) {
  this_thread.safe_calls_only = mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

bool captures_want_allocations() {
  const std::lock_guard lock(mutex);
  if (uncounted != 0) return true;
  for (const OpenCapture& capture : open) {
    if (capture.stream == nullptr) continue;
    if (capture.thread == &this_thread) return true;
    if (capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL && this_thread.safe_calls_only) return true;
  }
  return false;
}

void stream_is_free(CUstream stream) {
  {
    const std::lock_guard lock(mutex);
    if (under_way != 0) return;  // it may be about to capture
  }
  bool thawed = false;
  for_each_session([&](Session& each) {
    const StreamIndex index = each.stream(stream, false);
    if (!is_followed(index) || !each.engine.frozen(index)) return;
    each.engine.thaw(index);
    thawed = true;
  });
  if (!thawed) return;
  const std::lock_guard lock(mutex);
  watch();
}

}  // namespace offload
