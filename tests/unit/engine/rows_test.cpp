// SPDX-License-Identifier: Apache-2.0
// The rows of the hand-over table, one program each, under all schedules.

#include <gtest/gtest.h>

#include "tests/unit/engine/model/play.h"

namespace offload::model {
namespace {

TEST(Rows, ABufferLeavesForAnotherAndComesBack) {
  expect_holds({.device_granules = 4}, [](World& w) {
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

}  // namespace
}  // namespace offload::model
