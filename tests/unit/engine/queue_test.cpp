// SPDX-License-Identifier: Apache-2.0
// A submission that takes long counts as a wait for a full copy queue only if much is pending
// there: else the machine was busy.

#include <gtest/gtest.h>

#include "tests/unit/engine/model/play.h"

namespace offload::model {
namespace {

// Waits of cause `queue` while four buffers leave, each call taking a millisecond.
uint64_t waits(uint32_t depth, bool slow, bool passes) {
  Late late(Late::First::kUsers);
  World w({.device_granules = 4, .largest_extent = 1, .queue_depth = depth}, late);
  const int s = w.add_stream();
  std::vector<int> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(w.allocate(granules(1)));
    w.op(s, {write(all.back())});
  }
  w.idle(s, 3);
  w.port.before = [&](Call call) {
    for (int i = 0; slow && call == Call::kCopy && i < 1'000'000; ++i) w.device.tick();
  };
  for (const int each : all) {
    w.press(each);
    if (passes) w.run_all();
  }
  w.port.before = nullptr;
  w.finish();
  Snapshot snapshot{};
  w.statistics->read(snapshot);
  const Snapshot::Wait wait = snapshot.waits_of(HostWait::queue);
  EXPECT_GE(wait.ns, wait.count * 1'000'000);
  return wait.count;
}

TEST(Queue, ASlowCallBeforeALongQueueIsAWait) {
  // Before each of the last three copies there is at least a copy pending, and the events around
  // it.
  EXPECT_EQ(waits(3, true, false), 3u);
}

TEST(Queue, ASlowCallBeforeAShortQueueIsNot) {
  EXPECT_EQ(waits(512, true, false), 0u);
}

TEST(Queue, WhatHasPassedIsNotPending) {
  EXPECT_EQ(waits(8, true, false), 2u);
  EXPECT_EQ(waits(8, true, true), 0u);
}

TEST(Queue, AFastCallIsNoWait) {
  EXPECT_EQ(waits(1, false, false), 0u);
}

}  // namespace
}  // namespace offload::model
