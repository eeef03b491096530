// SPDX-License-Identifier: Apache-2.0
// Memory that goes to a new owner while the former one's work is still queued.

#include <gtest/gtest.h>

#include "profiler/base/log.h"
#include "tests/unit/engine/model/play.h"

namespace offload::model {
namespace {

// What is allocated in stream order is ordered for all that comes later on the stream, also for ops
// that do not name it.
TEST(GivenOut, TheStreamOfAnAllocationWaitsAtOnce) {
  expect_holds({.device_granules = 2}, [](World& w) {
    const int s0 = w.add_stream();
    const int s1 = w.add_stream();
    const int a = w.allocate_async(granules(2), s0);
    w.op(s0, {write(a)});
    w.op(s0, {update(a)});
    w.free_async(a, s0);
    const int b = w.allocate_async(granules(2), s1);
    w.op(s1, {hidden_write(b)});
    w.op(s1, {read(b)});
  });
}

// A block of a slab that stands behind a flag goes only to those who stand there, too, for the host
// may wait for the others before it sets the flag. Where no other can be had, the program is told.
TEST(GivenOut, ABlockBehindAFlagIsNoRoom) {
  expect_holds({.device_granules = 1, .largest_extent = 1}, [](World& w) {
    const int s0 = w.add_stream();
    const int s1 = w.add_stream();
    std::vector<int> blocks;
    for (int next = w.try_allocate_async(2000, s1); next >= 0;
         next = w.try_allocate_async(2000, s1))
      blocks.push_back(next);
    ASSERT_FALSE(blocks.empty());
    w.wait_for_flag(s1, 0);
    w.op(s1, {write(blocks[0])});
    w.free_async(blocks[0], s1);
    EXPECT_LT(w.try_allocate_async(2000, s0), 0);
    const int same = w.allocate_async(2000, s1);  // behind the flag already
    w.op(s1, {write(same)});
    w.synchronize(s0);
    w.set_flag(0);
  });
}

}  // namespace
}  // namespace offload::model
