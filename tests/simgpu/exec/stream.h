// SPDX-License-Identifier: Apache-2.0
#pragma once
// A stream: a queue of operations that run one after the other. All fields under the driver's lock.
// Streams are never freed: a destroyed one that has drained, and whose end every host thread knows,
// is used again with rising operation numbers (and another id), so that pointers and clocks stay
// meaningful.

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "tests/simgpu/exec/op.h"

namespace simgpu {

struct Capture;
struct Context;
struct GraphNode;

struct Stream {
  Context* context = nullptr;
  uint64_t context_id = 0;  // contexts' places are used again too
  int device = 0;
  uint64_t id = 0;
  unsigned flags = 0;
  int priority = 0;
  bool legacy = false;      // the context's default stream
  bool per_thread = false;  // a thread's default stream
  bool blocking = true;     // ordered against the default stream
  bool destroyed = false;
  uint32_t agent = 0;  // its place in vector clocks

  std::deque<std::unique_ptr<Op>> queue;
  uint64_t submitted = 0;  // number of the last operation in the queue
  uint64_t completed = 0;  // number of the last one that is done
  bool running = false;    // the head is being run
  int64_t time_ns = 0;     // clock virtual: when its last operation was over
  int64_t busy_ns = 0;     // clocks with time: what its operations took, since its creation
  VectorClock clock;       // what is finished before the head starts, and the head itself
  ClockRef last_known;     // already joined into clock

  // For the default stream's ordering: up to where it has been waited for, and the last point made
  // for that.
  uint64_t seen_by_legacy = 0;
  uint64_t legacy_seen = 0;
  RecordRef marker;

  // While it captures: into what, and the nodes that the next one depends on.
  Capture* capture = nullptr;
  std::vector<GraphNode*> capture_tail;

  bool idle() const { return completed == submitted; }
};

// What a blocked host thread waits for: operation `number` of `stream`.
struct Target {
  Stream* stream;
  uint64_t number;
  bool reached() const { return stream->completed >= number; }
};

}  // namespace simgpu
