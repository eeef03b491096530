// SPDX-License-Identifier: Apache-2.0
// What graphs name, and streams that capture: the rows of engine/graphs.cpp, and what they cost.

#include <gtest/gtest.h>

#include <utility>

#include "profiler/base/log.h"
#include "tests/unit/engine/model/inspect.h"
#include "tests/unit/engine/model/play.h"

namespace offload::model {
namespace {

constexpr Settings kFour = {.device_granules = 4};

TEST(Graphs, WhatIsAwayIsBroughtHomeByTheHost) {
  expect_holds(kFour, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    const int b = w.allocate(granules(2));
    w.op(s, {write(a)});
    w.op(s, {write(b)});
    w.idle(s, 4);
    w.press(a);
    const int c = w.allocate(granules(2));
    w.op(s, {write(c)});
    EXPECT_TRUE(w.away(a));
    w.idle(s, 4);
    w.begin_capture(s);
    const int graph = w.make_graph({update(a)});
    w.end_capture(s);
    // The content is there: a launch makes no stream wait, and takes no lock.
    EXPECT_EQ(w.states(a), "R");
    const uint64_t waits = w.port.calls(Call::kWait);
    w.launch(graph, s);
    EXPECT_EQ(w.port.calls(Call::kWait), waits);
    w.check(a);
    w.destroy_graph(graph);
  });
}

TEST(Graphs, WhatOneNamesStaysUntilTheLastIsGone) {
  expect_holds(kFour, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    w.op(s, {write(a)});
    const int first = w.make_graph({update(a)});
    const int second = w.make_graph({read(a)});
    w.idle(s, 4);
    w.press(a);
    EXPECT_EQ(w.states(a), "R");
    w.destroy_graph(first);
    w.press(a);
    EXPECT_EQ(w.states(a), "R");
    w.launch(second, s);
    w.destroy_graph(second);
    w.idle(s, 4);
    w.press(a);
    EXPECT_EQ(w.states(a), "L");
  });
}

TEST(Graphs, WhatIsFreedComesBackWithTheLastGraph) {
  expect_holds(kFour, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    w.op(s, {write(a)});
    const Address address = w.tensor(a).address;
    const int first = w.make_graph({update(a)});
    const int second = w.make_graph({update(a)});
    w.free(a);
    AllocationInfo info;
    EXPECT_FALSE(w.engine->describe(address, &info));
    EXPECT_EQ(w.engine->free(address, &w.pins()), Status::kInvalid);
    w.destroy_graph(first);
    const int b = w.allocate(granules(2));
    EXPECT_NE(w.tensor(b).address, address);
    w.launch(second, s);
    w.destroy_graph(second);
    const int c = w.allocate(granules(2));
    EXPECT_EQ(w.tensor(c).address, address);
    w.op(s, {write(c)});
  });
}

// A block of a slab never moves, but its memory would be the next one's at once.
// While one thread's free waits for the GPU, another launches the graph and destroys it.
TEST(Graphs, WhatIsLaunchedBesideAFreeIsWaitedFor) {
  for (const uint64_t bytes : {granules(2), uint64_t{2000}}) {
    expect_holds({.device_granules = 2}, [bytes](World& w) {
      const int s0 = w.add_stream();
      const int s1 = w.add_stream();
      const int a = w.allocate(bytes);
      w.op(s0, {write(a)});
      const int graph = w.make_graph({update(a)});
      w.op(s0, {});
      bool launched = false;
      const auto launch = [&] {
        if (std::exchange(launched, true)) return;
        w.launch(graph, s0);
        w.destroy_graph(graph);
      };
      w.port.while_waiting = launch;
      w.free(a);
      w.port.while_waiting = nullptr;
      launch();  // where nothing was to be waited for
      const int b = w.allocate(bytes);
      w.op(s1, {write(b)});
    });
  }
}

TEST(Graphs, ABlockThatIsFreedIsNobodysWhileOneLives) {
  expect_holds(kFour, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(1000);
    w.op(s, {write(a)});
    const Address address = w.tensor(a).address;
    const int first = w.make_graph({update(a)});
    const int second = w.make_graph({update(a)});
    w.free(a);
    AllocationInfo info;
    EXPECT_FALSE(w.engine->describe(address, &info));
    EXPECT_EQ(w.engine->free(address, &w.pins()), Status::kInvalid);
    w.destroy_graph(first);
    const int b = w.allocate(1000);
    EXPECT_NE(w.tensor(b).address, address);
    w.op(s, {write(b)});
    w.launch(second, s);
    w.destroy_graph(second);
    // Blocks that nobody waits for come first.
    int c = w.allocate(1000);
    for (int i = 0; i < 100 && w.tensor(c).address != address; ++i) c = w.allocate(1000);
    EXPECT_EQ(w.tensor(c).address, address);
    w.op(w.add_stream(), {write(c)});  // behind the launch
    w.op(s, {update(b)});
  });
}

TEST(Graphs, MoreThanFitsIsRefusedAndNothingOfItStays) {
  expect_holds(kFour, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    const int b = w.allocate(granules(2));
    w.op(s, {write(a)});
    w.op(s, {write(b)});
    w.idle(s, 4);
    w.press(a);
    const int c = w.allocate(granules(2));
    w.op(s, {write(c)});
    EXPECT_EQ(w.try_make_graph({read(a), read(b), read(c)}), -1);
    w.idle(s, 4);
    const int graph = w.make_graph({update(a), update(c)});
    w.launch(graph, s);
    w.destroy_graph(graph);
    w.check(b);
  });
}

TEST(Graphs, AStreamThatCapturesIsLeftAlone) {
  expect_holds(kFour, [](World& w) {
    const int s0 = w.add_stream();
    const int s1 = w.add_stream();
    const int a = w.allocate(granules(2));
    w.op(s1, {write(a)});
    const uint64_t records = w.port.calls(Call::kRecord);
    w.begin_capture(s1);
    EXPECT_EQ(w.port.calls(Call::kRecord), records + 1);
    EXPECT_EQ(w.engine->frozen_streams(), 1u);
    w.idle(s0, 4);
    // Allocations, evictions and frees of others go on; none of them touches it.
    for (int i = 0; i < 6; ++i) {
      const int c = w.allocate(granules(2));
      w.op(s0, {write(c)});
      w.idle(s0, 4);
      w.free(c);
    }
    w.end_capture(s1);
    EXPECT_EQ(w.engine->frozen_streams(), 0u);
    w.op(s1, {update(a)});
  });
}

TEST(Graphs, AStreamMayGoWhileItCaptures) {
  expect_holds(kFour, [](World& w) {
    const int s0 = w.add_stream();
    const int s1 = w.add_stream();
    const int a = w.allocate(granules(2));
    w.op(s1, {write(a)});
    w.begin_capture(s1);
    w.destroy_stream(s1);
    EXPECT_EQ(w.engine->frozen_streams(), 0u);
    w.idle(s0, 4);
    w.press(a);
    const int c = w.allocate(granules(2));
    w.op(s0, {write(c)});
  });
}

TEST(Graphs, ALostContextTakesThemAlong) {
  expect_holds(kFour, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    const int b = w.allocate(granules(1));
    w.op(s, {write(a)});
    const int small = w.allocate(1000);
    const int graph = w.make_graph({update(a), write(b), write(small)});
    w.free(b);
    w.free(small);
    w.begin_capture(s);
    w.lose_context();
    EXPECT_EQ(w.engine->frozen_streams(), 0u);
    EXPECT_EQ(w.engine->mapped_bytes(), 0u);
    w.destroy_graph(graph);  // holds nothing any more
    w.add_stream();
  });
}

}  // namespace
}  // namespace offload::model
