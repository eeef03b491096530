// SPDX-License-Identifier: Apache-2.0
// Where room comes from when free memory lies in extents of other sizes: what can be done without a
// wait of the host is done first.

#include <gtest/gtest.h>

#include "tests/unit/engine/model/inspect.h"
#include "tests/unit/engine/model/play.h"

namespace offload::model {
namespace {

constexpr Settings kFour = {.device_granules = 4, .largest_extent = 2};

uint64_t host_waits(World& w, HostWait cause) {
  Snapshot snapshot{};
  w.statistics->read(snapshot);
  return snapshot.waits_of(cause).count;
}

// On a device of four granules: one buffer of two and two of one; another of one is away, and its
// address shows its host memory.
struct OneIsAway {
  explicit OneIsAway(World& w) : s(w.add_stream()) {
    large = w.allocate_async(granules(2), s);
    small = w.allocate(granules(1));
    away = w.allocate(granules(1));
    for (const int each : {large, small, away}) w.op(s, {write(each)});
    w.idle(s, 3);
    w.press(away);
    other = w.allocate(granules(1));
    w.op(s, {write(other)});
    w.run_all();
    w.worker();
    w.idle(s, 3);
  }
  int s;
  int large = -1;
  int small = -1;
  int other = -1;
  int away = -1;
};

TEST(Room, WhatIsNotOfTheRightSizeStays) {
  expect_holds(kFour, [](World& w) {
    const OneIsAway full(w);
    EXPECT_EQ(w.states(full.away), "H");
    w.op(full.s, {read(full.away)});
    EXPECT_EQ(w.states(full.large), "R");  // idle longest, but its memory would not fit
    EXPECT_EQ(w.states(full.away), "R");
  });
}

// Grace guards against users that name nothing: a wait is slow, and no more.
TEST(Room, NoGraceIsWaivedToSpareAWaitForAnotherSize) {
  Late late(Late::First::kUsers);
  World w(kFour, late);
  const OneIsAway full(w);
  w.op(full.s, {update(full.small), update(full.other)});
  w.free_async(full.large, full.s);
  w.op(full.s, {read(full.away)});
  EXPECT_EQ(w.states(full.away), "R");
  EXPECT_EQ(w.states(full.small), "R");
  EXPECT_EQ(w.states(full.other), "R");
  EXPECT_EQ(host_waits(w, HostWait::resizing), 1u);
  w.finish();
}

// Nothing else is left: both are in use by the operation.
TEST(Room, TheHostWaitsForAnotherSizeAtLast) {
  Late late(Late::First::kUsers);
  World w(kFour, late);
  const OneIsAway full(w);
  w.op(full.s, {update(full.large)});
  w.free_async(full.large, full.s);
  w.op(full.s, {read(full.away), read(full.small), read(full.other)});
  EXPECT_EQ(w.states(full.away), "R");
  EXPECT_EQ(host_waits(w, HostWait::resizing), 1u);
  EXPECT_EQ(host_waits(w, HostWait::reuse_of_an_address), 0u);
  w.finish();
}

// A buffer whose address shows memory that was freed returns there: no remap, no wait.
TEST(Room, ABufferReturnsIntoFreedMemoryThatItsAddressShows) {
  Late late(Late::First::kUsers);
  World w({.device_granules = 6, .largest_extent = 2}, late);
  const int s = w.add_stream();
  const int a = w.allocate(granules(2));
  const int b = w.allocate_async(granules(2), s);
  w.op(s, {write(a)});
  w.idle(s, 3);
  w.press(a);
  w.allocate(granules(2));
  const int c = w.allocate_async(granules(2), s);
  ASSERT_EQ(w.states(a), "H");
  w.op(s, {write(c)});
  w.free_async(b, s);
  w.free_async(c, s);
  const uint64_t remaps = w.statistics->remaps.get();
  w.op(s, {read(a)});
  EXPECT_EQ(w.statistics->remaps.get(), remaps);
  EXPECT_EQ(w.port.calls(Call::kSynchronize), 0u);
  w.finish();
}

}  // namespace
}  // namespace offload::model
