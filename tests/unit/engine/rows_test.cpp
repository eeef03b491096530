// SPDX-License-Identifier: Apache-2.0
// The rows of the hand-over table, one program each, under all schedules; and what each costs.

#include <gtest/gtest.h>

#include "profiler/base/log.h"
#include "tests/unit/engine/model/inspect.h"
#include "tests/unit/engine/model/play.h"

namespace offload::model {
namespace {

constexpr Settings kFour = {.device_granules = 4};

uint64_t host_waits(World& w, HostWait cause) {
  Snapshot snapshot{};
  w.statistics->read(snapshot);
  return snapshot.waits_of(cause).count;
}

TEST(Rows, ABufferLeavesForAnotherAndComesBack) {
  expect_holds(kFour, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    const int b = w.allocate(granules(2));
    w.op(s, {write(a)});
    w.op(s, {write(b)});
    w.idle(s, 3);
    const int c = w.allocate(granules(2));
    w.op(s, {write(c)});
    EXPECT_TRUE(w.away(a));
    w.idle(s, 3);
    w.op(s, {update(a)});
    EXPECT_FALSE(w.away(a));
    w.check(a);
    w.check(b);
    w.check(c);
    EXPECT_GE(w.statistics->demand_misses.get(), 1u);
  });
}

TEST(Rows, ParkedMemoryServesTheSameStreamWithoutACall) {
  expect_holds(kFour, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate_async(granules(2), s);
    w.op(s, {write(a)});
    const Address address = w.tensor(a).address;
    w.free_async(a, s);
    const uint64_t maps = w.port.calls(Call::kMap);
    const uint64_t waits = w.port.calls(Call::kWait);
    const int b = w.allocate_async(granules(2), s);
    w.op(s, {write(b)});
    EXPECT_EQ(w.tensor(b).address, address);
    EXPECT_EQ(w.port.calls(Call::kMap), maps);
    EXPECT_EQ(w.port.calls(Call::kWait), waits);
    EXPECT_EQ(w.statistics->parked_hits.get(), 1u);
  });
}

TEST(Rows, ParkedMemoryServesAnotherStreamBehindAWait) {
  Late late(Late::First::kLatestUsers);
  World w(kFour, late);
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate_async(granules(2), s0);
  w.op(s0, {write(a)});
  w.op(s0, {update(a)});
  w.free_async(a, s0);
  const uint64_t maps = w.port.calls(Call::kMap);
  const int b = w.allocate_async(granules(2), s1);
  w.op(s1, {write(b)});
  EXPECT_EQ(w.port.calls(Call::kMap), maps);
  EXPECT_EQ(w.port.calls(Call::kWait), 1u);
  EXPECT_EQ(w.port.calls(Call::kSynchronize), 0u);
  w.finish();
}

TEST(Rows, ParkedMemoryServesARequestThatIsAnEighthSmaller) {
  expect_holds({.device_granules = 20}, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate_async(granules(9), s);
    const Address address = w.tensor(a).address;
    w.free_async(a, s);
    EXPECT_NE(w.tensor(w.allocate_async(granules(7), s)).address, address);
    EXPECT_EQ(w.tensor(w.allocate_async(granules(8), s)).address, address);
  });
}

// In the midst of an op, whose buffers stay, the driver asks for memory of its own.

TEST(Rows, TheDriverGetsMemoryAndNothingIsLost) {
  expect_holds(kFour, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    const int b = w.allocate(granules(2));
    w.op(s, {write(a)});
    w.op(s, {write(b)});
    w.idle(s, 3);
    World::Op op = w.begin(s, {update(b)});
    EXPECT_EQ(w.engine->give_way(granules(2)), granules(2));
    EXPECT_EQ(w.engine->mapped_bytes(), granules(2));
    EXPECT_EQ(w.engine->give_way(granules(2)), 0u);  // the rest is in use
    w.engine->gave_way(granules(2), true);
    w.forward(op);
    w.end(op);
    EXPECT_TRUE(w.away(a));
    EXPECT_EQ(w.try_allocate(granules(3)), -1);  // it is gone for good
    w.idle(s, 3);
    w.op(s, {update(a)});
    EXPECT_EQ(w.engine->mapped_bytes(), granules(2));
    w.check(a);
    w.check(b);
  });
}

// What was no use to the driver is ours again, but no more than that.
TEST(Rows, WhatTheDriverCouldNotUseComesBack) {
  expect_holds(kFour, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    const int b = w.allocate(granules(2));
    w.op(s, {write(a)});
    w.op(s, {write(b)});
    w.idle(s, 3);
    EXPECT_EQ(w.engine->give_way(granules(4)), granules(4));
    EXPECT_EQ(w.engine->mapped_bytes(), 0u);
    w.engine->gave_way(granules(4), false);
    w.op(s, {update(a), update(b)});
    EXPECT_EQ(w.engine->mapped_bytes(), granules(4));
    EXPECT_EQ(w.statistics->in_place_operations.get(), 0u);
    w.engine->gave_way(granules(1), false);
    w.idle(s, 3);
    const int c = w.allocate(granules(1));
    w.op(s, {write(c)});
    EXPECT_LE(w.engine->mapped_bytes(), granules(4));
    for (const int each : {a, b, c}) w.check(each);
  });
}

TEST(Rows, AUseBeforeTheHandOverCancels) {
  expect_holds(kFour, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    w.op(s, {write(a)});
    w.idle(s, 3);
    w.press(a);
    EXPECT_EQ(w.states(a), "L");
    w.op(s, {update(a)});
    EXPECT_EQ(w.states(a), "R");
    EXPECT_EQ(w.statistics->cancelled_evictions.get(), 1u);
    EXPECT_EQ(w.statistics->copies_in.get(), 0u);
  });
}

// All that an op names is called back before room is sought for what is away.

TEST(Rows, WhatAnOpNamesIsCancelledBeforeRoomIsSought) {
  expect_holds({.device_granules = 6}, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    const int b = w.allocate(granules(2));
    const int c = w.allocate(granules(2));
    w.op(s, {write(a)});
    w.op(s, {write(b)});
    w.op(s, {write(c)});
    w.idle(s, 3);
    w.press(a);
    const int d = w.allocate(granules(2));
    w.op(s, {write(d)});
    w.idle(s, 3);
    w.press(b);
    w.op(s, {read(a), update(b)});
    EXPECT_EQ(w.states(b), "R");
    w.run_all();
    w.engine->collect();
    EXPECT_EQ(w.statistics->cancelled_evictions.get(), 1u);
    EXPECT_EQ(w.statistics->copies_in.get(), 1u);
  });
}

// Back into the extent that the address still shows: no remap, no wait of the host.

TEST(Rows, ABufferReturnsIntoTheExtentThatItsAddressShows) {
  for (const char* name : {"users", "out", "in", "needed"}) {
    const auto schedule = make_schedule(name);
    World w({.device_granules = 2}, *schedule);
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    w.op(s, {write(a)});
    w.idle(s, 3);
    const int c = w.allocate(granules(2));
    w.op(s, {write(c)});
    w.idle(s, 3);
    const uint64_t remaps = w.statistics->remaps.get();
    const Handle shown = w.device.memory().shown_at(w.tensor(a).address);
    // The other buffer leaves for it, although neither copy has run.
    w.op(s, {update(a)});
    EXPECT_EQ(w.statistics->remaps.get(), remaps);
    EXPECT_EQ(w.device.memory().shown_at(w.tensor(a).address), shown);
    EXPECT_EQ(host_waits(w, HostWait::reuse_of_an_address), 0u);
    EXPECT_TRUE(w.away(c));
    w.finish();
  }
}

TEST(Rows, OnlyARemapOfAnAddressInUseWaitsOnTheHost) {
  Late late(Late::First::kUsers);
  World w(kFour, late);
  const int s = w.add_stream();
  const int a = w.allocate(granules(2));
  const int b = w.allocate_async(granules(2), s);
  w.op(s, {write(a)});
  w.idle(s, 3);
  w.press(a);
  const int c = w.allocate(granules(2));
  w.op(s, {write(c)});
  w.free_async(b, s);
  EXPECT_EQ(w.port.calls(Call::kSynchronize), 0u);  // an eviction makes nobody wait
  w.op(s, {read(a)});                               // back into b's memory
  EXPECT_EQ(host_waits(w, HostWait::reuse_of_an_address), 1u);
  w.finish();
}

// The copy out waits for the buffer's own work, not for what the stream was given after it.

TEST(Rows, AnEvictionDoesNotWaitForLaterWork) {
  Late late(Late::First::kOut);
  World w(kFour, late);
  const int s = w.add_stream();
  const int a = w.allocate(granules(2));
  w.op(s, {write(a)});
  w.idle(s, 3);
  w.press(a);  // leaves an event behind each
  w.op(s, {read(a)});
  w.idle(s, 3);
  w.press(a);
  w.run(s);
  w.idle(s, 1);
  w.worker();
  w.op(s, {read(a)});
  w.idle(s, 3);
  w.press(a);
  w.op(s, {read(a)});
  w.wait_for_flag(s, 0);
  w.run_lane(Lane::kOut);  // hangs if the lane waits for the flag
  w.set_flag(0);
  w.finish();
}

// Pointers to it may lie where we do not look: in pinned memory, in a module's variables.

TEST(Rows, WhatNoOpHasNamedKeepsItsContent) {
  expect_holds({.device_granules = 2}, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    w.op(s, {hidden_write(a)});
    w.idle(s, 3);
    const int b = w.allocate(granules(2));
    EXPECT_EQ(w.states(a), "H");
    w.op(s, {write(b)});
    w.check(a);
  });
}

TEST(Rows, ABufferIsHalfAwayWhenSlotsRunOut) {
  // Two granules of host memory, of which the reserve is one.
  expect_holds({.device_granules = 3, .host_granules = 2, .largest_extent = 1}, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(3));
    w.op(s, {write(a)});
    w.idle(s, 3);
    const int b = w.allocate(granules(1));
    EXPECT_EQ(w.states(a), "HRR");
    w.op(s, {write(b)});
    EXPECT_EQ(w.try_allocate(granules(1)), -1);
    w.op(s, {update(a)});
    EXPECT_EQ(w.states(a), "RRR");
    EXPECT_EQ(w.states(b), "H");
  });
}

// Whatever is half away can still leave with its other half.

TEST(Rows, TheOtherHalfCanLeaveLater) {
  expect_holds({.device_granules = 4, .host_granules = 4, .largest_extent = 1}, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(4));
    w.op(s, {write(a)});
    w.idle(s, 3);
    const int b = w.allocate(granules(3));
    EXPECT_EQ(w.states(a), "HHHR");
    w.op(s, {write(b)});
    w.free(b);
    const int c = w.allocate(granules(3));
    w.op(s, {write(c)});
    w.idle(s, 3);
    w.op(s, {read(a)});
    w.op(s, {read(c)});
    w.op(s, {read(a)});
  });
}

// Rule 6: host and device are full, and everything can still be swapped in, whatever its size.

TEST(Rows, AFullHostAndAFullDeviceDoNotLockEachOtherOut) {
  for (const EvictedShows shows : {EvictedShows::kHostCopy, EvictedShows::kNothing}) {
    const uint32_t largest = shows == EvictedShows::kHostCopy ? 4 : 1;
    expect_holds(
        {.device_granules = 9, .host_granules = 16, .largest_extent = largest, .evicted = shows},
        [](World& w) {
          const int s = w.add_stream();
          std::vector<int> all;
          for (uint64_t i = 0; i < 30; ++i) {
            const int next = w.try_allocate(granules(1 + i * 5 % 7));
            if (next < 0) continue;
            w.op(s, {write(next)});
            all.push_back(next);
          }
          EXPECT_GE(w.statistics->live_bytes.get(), granules(15));
          for (int round = 0; round < 2; ++round) {
            for (const int each : all) w.op(s, {update(each)});
          }
        },
        {.seeds = 20, .orders = 20});
  }
}

TEST(Rows, ExtentsAreSplitAndJoinedToFit) {
  expect_holds({.device_granules = 8, .largest_extent = 8}, [](World& w) {
    const int s = w.add_stream();
    const int whole = w.allocate(granules(8));
    w.op(s, {write(whole)});
    w.free_async(whole, s);
    std::vector<int> small;
    for (int i = 0; i < 8; ++i) {
      small.push_back(w.allocate_async(granules(1), s));
      w.op(s, {write(small.back())});
    }
    EXPECT_EQ(w.statistics->mapped_bytes.get(), granules(8));
    for (const int each : small) w.free_async(each, s);
    w.run_all();
    w.worker();
    const int again = w.allocate_async(granules(8), s);
    w.op(s, {write(again)});
    EXPECT_EQ(w.statistics->mapped_bytes.get(), granules(8));
  });
}

TEST(Rows, FreedWhileAway) {
  expect_holds({.device_granules = 2}, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    w.op(s, {write(a)});
    w.idle(s, 3);
    const int b = w.allocate(granules(2));
    w.op(s, {write(b)});
    EXPECT_EQ(w.states(a), "H");
    w.free_async(a, s);
    EXPECT_EQ(w.statistics->host_bytes.get(), 0u);
    w.free_async(b, s);
    w.run_all();
    w.worker();
    EXPECT_EQ(EngineTest::jobs(*w.engine), 0u);
    const Slots& slots = EngineTest::slots(*w.engine);
    EXPECT_EQ(slots.free_bytes(), slots.pinned_bytes());
  });
}

TEST(Rows, FreedByAnotherThreadWhileTheFirstNamesItByChance) {
  expect_holds({.device_granules = 4}, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    const int b = w.allocate(granules(2));
    w.op(s, {write(a), write(b)});
    w.as(1);
    World::Op op = w.begin(s, {update(b), phantom(a)});
    w.as(0);
    w.free_async(a, s);
    const int c = w.allocate_async(granules(2), s);
    w.op(s, {write(c)});
    w.as(1);
    w.forward(op);
    w.end(op);
    w.as(0);
    w.idle(s, 3);
    w.press(c);
    w.op(s, {read(c)});
  });
}

TEST(Rows, AnAddressComesBackOnlyOnceUnmapped) {
  Late late(Late::First::kUsers);
  World w({.device_granules = 2, .largest_extent = 1}, late);
  const int s = w.add_stream();
  const int a = w.allocate(granules(2));
  const Address address = w.tensor(a).address;
  w.op(s, {write(a)});
  w.free_async(a, s);
  const int b = w.allocate_async(granules(1), s);  // takes the parked memory apart
  w.worker();
  const int c = w.allocate_async(granules(1), s);
  EXPECT_NE(w.tensor(b).address, address);
  EXPECT_NE(w.tensor(c).address, address);
  w.free_async(b, s);
  w.free_async(c, s);
  w.run_all();
  w.engine->trim(0);
  w.worker();
  EXPECT_EQ(w.tensor(w.allocate(granules(2))).address, address);
  w.finish();
}

TEST(Rows, AnEvictedAddressShowsTheHostCopyOrNothing) {
  for (const EvictedShows shows : {EvictedShows::kHostCopy, EvictedShows::kNothing}) {
    Eager eager;
    World w({.device_granules = 2, .evicted = shows}, eager);
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    w.op(s, {write(a)});
    w.idle(s, 3);
    w.allocate(granules(2));
    w.worker();
    Memory& memory = w.device.memory();
    const Handle shown = memory.shown_at(w.tensor(a).address);
    if (shows == EvictedShows::kNothing) {
      EXPECT_EQ(shown, 0u);
    } else {
      ASSERT_NE(shown, 0u);
      EXPECT_EQ(memory.place_of(shown), Place::kHost);
      w.op(s, {hidden_update(a)});  // a stray access is right, read or write
      w.run(s);
    }
    w.finish();
  }
}

TEST(Rows, NothingMovesWhenOnlyWatching) {
  expect_holds({.device_granules = 2, .move = false}, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    w.op(s, {write(a)});
    w.idle(s, 3);
    EXPECT_EQ(w.try_allocate(granules(2)), -1);
    EXPECT_EQ(w.statistics->allocations_refused.get(), 1u);
    w.free(a);
    EXPECT_GE(w.try_allocate(granules(2)), 0);
  });
}

TEST(Rows, AnOpThatUsesMoreThanThereIsRuns) {
  set_log_sink([](std::string_view) {});
  expect_holds(kFour, [](World& w) {
    const int s = w.add_stream();
    const int t = w.add_stream();
    const int a = w.allocate(granules(3));
    const int b = w.allocate(granules(3));
    w.op(s, {write(a)});
    w.op(s, {write(b)});
    w.op(s, {update(a), update(b)});
    EXPECT_EQ(w.statistics->in_place_operations.get(), 1u);
    EXPECT_EQ(w.statistics->in_place_bytes.get(), granules(2));
    // Again, on another stream, then each alone.
    w.op(t, {update(b), update(a)});
    w.op(s, {update(a)});
    w.op(t, {update(b)});
    w.check(a);
    w.check(b);
    // Used in place for the first time, and freed so.
    const int c = w.allocate(granules(3));
    w.op(s, {write(c), update(a)});
    w.free_async(a, s);
    w.check(b);
    w.check(c);
  });
}

TEST(Rows, WhatIsTooLargeIsRefusedAndNothingIsLost) {
  expect_holds({.device_granules = 4, .evicted = EvictedShows::kNothing}, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(3));
    const int b = w.allocate(granules(3));
    w.op(s, {write(a)});
    w.op(s, {write(b)});
    EXPECT_EQ(w.try_op(s, {update(a), update(b)}), Status::kOutOfMemory);
    EXPECT_EQ(w.try_allocate(granules(5)), -1);
    w.check(a);
    w.check(b);
  });
}

}  // namespace
}  // namespace offload::model
