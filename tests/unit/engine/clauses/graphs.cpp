// SPDX-License-Identifier: Apache-2.0
// Streams that capture, and what graphs name.

#include "tests/unit/engine/clauses/scenarios.h"

namespace offload::model {

namespace {

// What a stream was given before it captures is still to run when its buffer leaves.
void leaves_behind_a_capture(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate(granules(2));
  w.op(s1, {write(a)});
  w.begin_capture(s1);
  w.idle(s0, 4);
  w.press(a);
  const int c = w.allocate(granules(2));
  w.op(s0, {write(c)});
  w.end_capture(s1);
}

// Two buffers fill the device; one leaves, and a block takes its place that any stream may use.
struct BlockInTheWay {
  explicit BlockInTheWay(World& w) : s0(w.add_stream()), s1(w.add_stream()) {
    a = w.allocate(granules(1));
    w.allocate(granules(1));
    w.op(s1, {});
    w.op(s0, {write(a)});
    w.idle(s0, 4);
    w.begin_capture(s1);
    w.press(a);
    small = w.allocate(4000);
  }
  int s0, s1;
  int a = -1;
  int small = -1;
};

// Another thread's allocation would make the stream that captures wait.
void allocates_beside_a_capture(World& w) {
  const BlockInTheWay block(w);
  w.end_capture(block.s1);
}

// The stream uses the block once it no longer captures.
void uses_after_a_capture(World& w) {
  const BlockInTheWay block(w);
  w.end_capture(block.s1);
  w.op(block.s1, {write(block.small)});
}

// Somebody needs room between two launches.
void room_beside_a_graph(World& w) {
  const int s0 = w.add_stream();
  const int a = w.allocate(granules(2));
  const int b = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.op(s0, {write(b)});
  const int graph = w.make_graph({update(a)});
  w.idle(s0, 4);
  w.press({a, b});
  const int c = w.allocate(granules(2));
  w.op(s0, {write(c)});
  w.launch(graph, s0);
  w.destroy_graph(graph);
}

// What is freed is written by the graph all the same.
void freed_beside_a_graph(World& w) {
  const int s0 = w.add_stream();
  const int a = w.allocate(granules(2));
  w.op(s0, {write(a)});
  const int graph = w.make_graph({update(a)});
  w.free(a);
  const int b = w.allocate(granules(2));
  w.op(s0, {write(b)});
  w.launch(graph, s0);
  w.check(b);
  w.destroy_graph(graph);
}

// The graph is gone, and its last launch is still to run.
void graph_goes_early(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate(granules(2));
  w.op(s0, {write(a)});
  const int graph = w.make_graph({update(a)});
  w.free(a);
  w.launch(graph, s0);
  w.destroy_graph(graph);
  const int b = w.allocate(granules(2));
  w.op(s1, {write(b)});
}

}  // namespace

std::vector<Scenario> graph_scenarios() {
  const Settings two = {.device_granules = 2};
  const Settings four = {.device_granules = 4};
  const Settings ones = {.device_granules = 2, .largest_extent = 1};
  return {
      {Clause::kCaptureLeavesEvent, "CaptureLeavesEvent", two, leaves_behind_a_capture},
      {Clause::kCaptureUntouched, "CaptureUntouched", ones, allocates_beside_a_capture},
      {Clause::kThawPaysWaits, "ThawPaysWaits", ones, uses_after_a_capture},
      {Clause::kGraphHolds, "GraphHolds", four, room_beside_a_graph},
      {Clause::kFreedIsHeld, "FreedIsHeld", four, freed_beside_a_graph},
      {Clause::kHeldGoesBehindUse, "HeldGoesBehindUse", two, graph_goes_early},
  };
}

}  // namespace offload::model
