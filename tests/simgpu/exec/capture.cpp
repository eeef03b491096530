// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/capture.h"

#include <algorithm>
#include <memory>
#include <unordered_set>

#include "tests/simgpu/driver/context.h"
#include "tests/simgpu/driver/thread_state.h"
#include "tests/simgpu/exec/stream.h"

namespace simgpu::captures {

namespace {

std::vector<std::unique_ptr<Capture>>& active() {
  static auto* all = new std::vector<std::unique_ptr<Capture>>;
  return *all;
}

void forget(Capture& capture) {
  for (Stream* stream : capture.streams) {
    stream->capture = nullptr;
    stream->capture_tail.clear();
  }
  capture.graph->capture = 0;
  std::erase_if(active(), [&](const auto& entry) { return entry.get() == &capture; });
}

// Everything that the other streams captured must lie before what the origin captured last.
bool is_joined(const Capture& capture) {
  std::unordered_set<const GraphNode*> before;
  std::vector<const GraphNode*> open(capture.origin->capture_tail.begin(),
                                     capture.origin->capture_tail.end());
  while (!open.empty()) {
    const GraphNode* node = open.back();
    open.pop_back();
    if (!before.insert(node).second) continue;
    open.insert(open.end(), node->dependencies.begin(), node->dependencies.end());
  }
  return std::all_of(capture.streams.begin(), capture.streams.end(), [&](const Stream* stream) {
    return std::all_of(stream->capture_tail.begin(), stream->capture_tail.end(),
                       [&](const GraphNode* node) { return before.count(node) != 0; });
  });
}

}  // namespace

void begin(Stream& stream, CUstreamCaptureMode mode, Graph* into,
           std::vector<GraphNode*> dependencies) {
  static uint64_t last_id = 0;
  auto capture = std::make_unique<Capture>();
  capture->id = ++last_id;
  capture->mode = mode;
  capture->thread = thread_state().id;
  capture->origin = &stream;
  capture->owns_graph = into == nullptr;
  capture->graph = into != nullptr ? into : graphs::create();
  capture->graph->capture = capture->id;
  capture->streams.push_back(&stream);
  stream.capture = capture.get();
  stream.capture_tail = std::move(dependencies);
  active().push_back(std::move(capture));
}

CUresult end(Stream& stream, Graph** graph) {
  Capture& capture = *stream.capture;
  *graph = nullptr;
  if (capture.origin != &stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture.thread != thread_state().id) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  CUresult error = CUDA_SUCCESS;
  if (capture.invalid) {
    error = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (!is_joined(capture)) {
    error = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  Graph* captured = capture.graph;
  const bool owned = capture.owns_graph;
  forget(capture);
  if (error == CUDA_SUCCESS) {
    *graph = captured;
  } else if (owned) {
    graphs::destroy(captured);
  }
  return error;
}

CUresult add(Stream& stream, NodeParameters parameters) {
  if (stream.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  GraphNode* node =
      graphs::add_node(*stream.capture->graph, std::move(parameters), stream.capture_tail);
  stream.capture_tail = {node};
  return CUDA_SUCCESS;
}

Capture* find(uint64_t id) {
  for (const auto& capture : active()) {
    if (capture->id == id) return capture.get();
  }
  return nullptr;
}

void join(Capture& capture, Stream& stream, const std::vector<GraphNode*>& nodes) {
  if (stream.capture == nullptr) {
    stream.capture = &capture;
    capture.streams.push_back(&stream);
  }
  for (GraphNode* node : nodes) {
    auto& tail = stream.capture_tail;
    if (std::find(tail.begin(), tail.end(), node) == tail.end()) tail.push_back(node);
  }
}

void invalidate(Capture& capture) {
  capture.invalid = true;
}

void leave(Stream& stream) {
  if (stream.capture == nullptr) return;
  Capture& capture = *stream.capture;
  invalidate(capture);
  std::erase(capture.streams, &stream);
  stream.capture = nullptr;
  stream.capture_tail.clear();
  if (capture.origin != &stream) return;
  Graph* graph = capture.graph;
  const bool owned = capture.owns_graph;
  forget(capture);
  if (owned) graphs::destroy(graph);
}

bool meets_default_stream(const Context* context, bool and_invalidate) {
  bool found = false;
  for (const auto& capture : active()) {
    const bool meets = std::any_of(
        capture->streams.begin(), capture->streams.end(),
        [&](const Stream* stream) { return stream->context == context && stream->blocking; });
    if (!meets) continue;
    found = true;
    if (and_invalidate) invalidate(*capture);
  }
  return found;
}

bool conflicts_with_synchronisation(const Context* context, int device) {
  bool found = false;
  for (const auto& capture : active()) {
    const bool conflicts =
        std::any_of(capture->streams.begin(), capture->streams.end(), [&](const Stream* stream) {
          if (context == nullptr) return stream->device == device;
          return stream->context == context || stream->context->primary_of == context;
        });
    if (!conflicts) continue;
    found = true;
    invalidate(*capture);
  }
  return found;
}

bool forbid_unsafe_call() {
  const ThreadState& me = thread_state();
  if (active().empty() || me.capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  bool found = false;
  for (const auto& capture : active()) {
    const bool mine = capture->thread == me.id && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool anyones = capture->thread != me.id &&
                         capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                         me.capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!mine && !anyones) continue;
    found = true;
    invalidate(*capture);
  }
  return found;
}

}  // namespace simgpu::captures
