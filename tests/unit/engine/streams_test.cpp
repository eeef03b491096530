// SPDX-License-Identifier: Apache-2.0
// Streams as the engine keeps them: many of them, per-thread ones, some that come and go, waits on
// flags.

#include <gtest/gtest.h>

#include "tests/unit/engine/model/inspect.h"
#include "tests/unit/engine/model/play.h"

namespace offload::model {
namespace {

uint64_t host_waits(World& w, HostWait cause) {
  Snapshot snapshot{};
  w.statistics->read(snapshot);
  return snapshot.waits_of(cause).count;
}

// Beyond the 64 that have a bit in each buffer, and the 4 that have a place for their last use.
TEST(Streams, ManyStreamsReadWhatComesBack) {
  expect_holds({.device_granules = 4},
               [](World& w) {
                 std::vector<int> streams;
                 for (int i = 0; i < 70; ++i) streams.push_back(w.add_stream());
                 const int a = w.allocate(granules(2));
                 const int b = w.allocate(granules(2));
                 w.op(streams[0], {write(a), write(b)});
                 w.idle(streams[0], 3);
                 const int c = w.allocate(granules(2));
                 w.op(streams[1], {write(c)});
                 EXPECT_TRUE(w.away(a));
                 for (const int stream : streams) w.op(stream, {read(a)});
                 w.op(streams[69], {update(a)});
                 w.idle(streams[2], 3);
                 w.press(a);
                 const int d = w.allocate(granules(2));
                 w.op(streams[3], {write(d)});
               },
               {.seeds = 20, .orders = 20});
}

TEST(Streams, AnIndexIsUsedAgain) {
  expect_holds({.device_granules = 4},
               [](World& w) {
                 const int s = w.add_stream();
                 const int a = w.allocate(granules(2));
                 w.op(s, {write(a)});
                 for (int i = 0; i < 40; ++i) {
                   const int stream = w.add_stream();
                   w.op(stream, {update(a)});
                   w.synchronize(stream);
                   w.destroy_stream(stream);  // leaves an event behind
                   w.run(stream);
                 }
                 EXPECT_LT(EngineTest::streams(*w.engine).count(), 8u);
               },
               {.seeds = 10, .orders = 5});
}

// A stream gets the index of one that had waited already.
TEST(Streams, ANewStreamWaitsAlthoughItsIndexHasWaited) {
  Late late(Late::First::kLatestUsers);
  World w({.device_granules = 4}, late);
  const int s = w.add_stream();
  const int old = w.add_stream();
  const int a = w.allocate(granules(2));
  const int b = w.allocate(granules(2));
  w.op(s, {write(a), write(b)});
  w.idle(s, 3);
  w.press(a);
  const int c = w.allocate(granules(2));
  w.op(s, {write(c)});
  w.free(c);
  w.op(s, {read(b)});
  w.op(old, {read(b)});
  const StreamIndex index = w.index_of(old);
  w.op(old, {read(a)});  // waits for the copy in, which has not run
  w.run(old);
  w.destroy_stream(old);
  w.idle(s, 3);
  w.press(a);
  const int d = w.allocate(granules(2));
  w.op(s, {write(d)});
  w.free(d);
  w.op(s, {read(a)});
  const int fresh = w.add_stream();
  w.op(fresh, {read(a)});
  EXPECT_EQ(w.index_of(fresh), index);
  w.finish();
}

// Two contexts use the same buffers; their streams have the same numbers, and none can record an
// event of the other's.
TEST(Streams, OfSeveralContexts) {
  expect_holds({.device_granules = 4},
               [](World& w) {
                 const int own = w.add_stream();
                 const int other = w.add_stream(false, 7);
                 ASSERT_NE(w.index_of(own), w.index_of(other));
                 const int a = w.allocate(granules(2));
                 const int b = w.allocate(granules(2));
                 w.op(own, {write(a), write(b)});
                 w.idle(own, 3);
                 w.press(a);
                 const int c = w.allocate(granules(2));
                 w.op(other, {write(c)});
                 EXPECT_TRUE(w.away(a));
                 w.op(other, {update(a)});
                 w.idle(other, 3);
                 w.press(c);
                 w.op(own, {update(b)});
                 w.op(other, {read(b)});
                 w.op(own, {update(a)});
                 w.free_async(c, other);
                 const int d = w.allocate_async(granules(2), own);
                 w.op(own, {write(d)});
               },
               {.seeds = 20, .orders = 20});
}

// One of them goes, and its handles and numbers come back as another's.
TEST(Streams, AContextGoesAndTheOtherStays) {
  expect_holds({.device_granules = 4},
               [](World& w) {
                 const int own = w.add_stream();
                 const int a = w.allocate(granules(2));
                 const int b = w.allocate(granules(2));
                 w.op(own, {write(a), write(b)});
                 for (int round = 0; round < 3; ++round) {
                   const int other = w.add_stream(false, 7);
                   w.idle(own, 3);
                   w.press(round % 2 == 0 ? a : b);
                   const int c = w.allocate(granules(2));
                   w.op(other, {write(c)});
                   w.op(other, {update(a)});
                   w.op(own, {read(c)});
                   w.free(c);
                   w.lose_other_context(7);
                   EXPECT_FALSE(w.engine->follows_streams_of(reinterpret_cast<void*>(7)));
                   w.op(own, {update(a)});
                   w.op(own, {update(b)});
                 }
                 EXPECT_LT(EngineTest::streams(*w.engine).count(), 6u);
               },
               {.seeds = 20, .orders = 20});
}

// Another thread makes a context that has the handle of one which is being destroyed.
TEST(Streams, AContextWhoseHandleComesBackAtOnceIsAnother) {
  expect_holds({.device_granules = 4}, [](World& w) {
    const int own = w.add_stream();
    const int a = w.allocate(granules(2));
    const int b = w.allocate(granules(2));
    w.op(own, {write(a), write(b)});
    w.op(w.add_stream(false, 7), {update(a)});
    const int other = w.replace_other_context(7, {update(a)});
    w.idle(own, 20);
    w.press(a);
    const int c = w.allocate(granules(2));
    w.op(own, {write(c)});
    w.op(own, {update(a)});
    w.op(other, {read(b)});
  });
}

// More streams at once than there used to be room for.
TEST(Streams, HundredsAtOnce) {
  Eager eager;
  World w({.device_granules = 4}, eager);
  w.check_books = false;
  const int a = w.allocate(granules(2));
  w.op(w.add_stream(), {write(a)});
  for (int i = 0; i < 600; ++i) {
    const int stream = w.add_stream();
    ASSERT_NE(w.index_of(stream), kNoStream);
    w.op(stream, {read(a)});
  }
  w.op(0, {update(a)});
  w.finish();
}

// Each thread has a stream of its own behind the same handle; only its owner can record there.
TEST(Streams, PerThreadStreams) {
  for (const bool fenced : {false, true}) {
    expect_holds({.device_granules = 8, .fenced_free = fenced}, [](World& w) {
      w.as(0);
      const int s0 = w.add_stream(true);
      w.as(1);
      const int s1 = w.add_stream(true);
      w.as(0);
      const int a = w.allocate(granules(2));
      const int small = w.allocate(3000);
      w.op(s0, {write(a)});
      w.op(s0, {write(small)});
      w.as(1);
      w.op(s1, {update(a), read(small)});
      w.idle(s1, 3);
      const int b = w.allocate(granules(4));
      w.op(s1, {write(b)});
      w.as(0);
      w.op(s0, {read(a)});
      w.free(small);
      w.as(1);
      const int again = w.allocate(3000);
      w.op(s1, {write(again)});
      w.free_async(again, s1);
      w.as(0);
      const int third = w.allocate_async(3000, s0);
      w.op(s0, {write(third)});
      w.idle(s0, 3);
      w.press(b);
      const int c = w.allocate(granules(4));
      w.op(s0, {write(c)});
    });
  }
}

// A block that a per-thread stream of another thread uses is fenced, too, although nothing names
// it.
TEST(Streams, ABlockUsedOnAnotherThreadsStreamIsFenced) {
  expect_holds({.device_granules = 4, .fenced_free = true}, [](World& w) {
    const int ours = w.add_stream();
    w.as(1);
    const int theirs = w.add_stream(true);
    w.as(0);
    const int small = w.allocate(4000);
    w.as(1);
    w.op(theirs, {write(small)});
    w.op(theirs, {update(small)});
    w.as(0);
    w.free(small);
    const int again = w.allocate_async(4000, ours);
    EXPECT_EQ(w.tensor(again).address, w.tensor(small).address);
    w.op(ours, {write(again)});
    w.run_all();
    w.as(1);
    w.idle(theirs, 1);
    w.as(0);
  });
}

TEST(Streams, AFreeThatIsFencedDoesNotWait) {
  Late late(Late::First::kUsers);
  World w({.device_granules = 4, .fenced_free = true}, late);
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.op(s1, {update(a)});
  w.free(a);
  EXPECT_EQ(w.port.calls(Call::kSynchronize), 0u);
  const int b = w.allocate(granules(2));
  EXPECT_EQ(w.tensor(b).address, w.tensor(a).address);
  w.op(s0, {write(b)});
  w.finish();
}

TEST(Streams, AFreeThatSynchronisesIsCounted) {
  Late late(Late::First::kUsers);
  World w({.device_granules = 4}, late);
  const int s = w.add_stream();
  const int a = w.allocate(granules(2));
  w.op(s, {write(a)});
  w.free(a);
  EXPECT_EQ(host_waits(w, HostWait::synchronous_free), 1u);
  EXPECT_TRUE(w.stream(s).queue->items.empty());
}

// Rule G: all that could be had stands behind a flag that the host sets later. Refused, not hung.
TEST(Flags, NothingBehindAFlagIsWaitedFor) {
  expect_holds({.device_granules = 4}, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    const int b = w.allocate(granules(2));
    w.wait_for_flag(s, 0);
    w.op(s, {write(a)});
    w.op(s, {write(b)});
    w.idle(s, 3);
    EXPECT_EQ(w.try_allocate(granules(2)), -1);
    EXPECT_GE(host_waits(w, HostWait::external_flag), 1u);
    w.free_async(a, s);
    const int other = w.add_stream();
    EXPECT_EQ(w.try_allocate_async(granules(2), other), -1);
    // Its own stream may have it: it stands behind the flag anyway.
    const int c = w.try_allocate_async(granules(2), s);
    EXPECT_GE(c, 0);
    w.op(s, {write(c)});
    w.engine->trim(0);
    w.engine->keep(w.tensor(b).address, w.pins());
    w.set_flag(0);
  });
}

// The flag passes while somebody waits.
TEST(Flags, AllocationsGoOnOnceTheFlagHasPassed) {
  expect_holds({.device_granules = 4, .patience = 200}, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    const int b = w.allocate(granules(2));
    w.wait_for_flag(s, 0);
    w.op(s, {write(a)});
    w.op(s, {write(b)});
    w.idle(s, 3);
    int looks = 0;
    w.port.while_waiting = [&] {
      if (++looks == 3) w.set_flag(0);
    };
    const int c = w.allocate(granules(2));
    w.port.while_waiting = nullptr;
    w.op(s, {write(c)});
    EXPECT_GE(looks, 3);
  });
}

TEST(Victims, OnlyFinishedOnesWhenAsked) {
  Late late(Late::First::kUsers);
  World w({.device_granules = 4, .finished_only = true, .patience = 0}, late);
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate(granules(2));
  const int b = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.idle(s0, 3);
  w.op(s1, {write(b)});
  w.idle(s1, 3);
  EXPECT_EQ(w.try_allocate(granules(2)), -1);
  w.run(s1);
  w.run(s0);
  EXPECT_GE(w.try_allocate(granules(2)), 0);
  w.finish();
}

}  // namespace
}  // namespace offload::model
