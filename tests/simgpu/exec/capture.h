// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stream capture (cuda.h, cuStreamBeginCapture and cuThreadExchangeStreamCaptureMode; CUDA C++
// Programming Guide, "Creating a Graph Using Stream Capture"): while a stream captures, what is
// submitted to it becomes nodes of a graph. An event recorded in it carries the capture into the
// streams that wait for it. What the rules forbid invalidates the capture; until its end every use
// of its streams then answers 901. Driver's lock.

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "tests/simgpu/exec/graph.h"

namespace simgpu {

struct Stream;

struct Capture {
  uint64_t id = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  uint64_t thread = 0;       // where it began
  Stream* origin = nullptr;  // null once destroyed: it can only be invalid then
  Graph* graph = nullptr;
  bool owns_graph = true;
  bool invalid = false;
  std::vector<Stream*> streams;  // the origin and those that joined
};

namespace captures {

// `into`: null for a graph of its own. The stream must not capture yet.
void begin(Stream& stream, CUstreamCaptureMode mode, Graph* into,
           std::vector<GraphNode*> dependencies);
// Ends the stream's capture, which it began. *graph is null on any error but WRONG_THREAD (908) and
// UNMATCHED (903), which leave the capture as it is.
CUresult end(Stream& stream, Graph** graph);
// The operation becomes a node behind what the stream captured before.
CUresult add(Stream& stream, NodeParameters parameters);
// Null: it has ended.
Capture* find(uint64_t id);
// The stream waits for what these nodes do.
void join(Capture& capture, Stream& stream, const std::vector<GraphNode*>& nodes);
void invalidate(Capture& capture);
// The stream is destroyed.
void leave(Stream& stream);

// Captures in blocking streams of the context, which its default stream must not meet.
bool meets_default_stream(const Context* context, bool and_invalidate);
// A stream of the context or of a green one made of it (null: of the device) captures; those
// captures are invalidated.
bool conflicts_with_synchronisation(const Context* context, int device);
// The calling thread may not make potentially unsafe calls now; what forbids it is invalidated.
bool forbid_unsafe_call();

}  // namespace captures
}  // namespace simgpu
