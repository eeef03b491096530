// SPDX-License-Identifier: Apache-2.0
// Copies of which a part was submitted when a call failed: what they read and write is theirs until
// they have passed, under all schedules.

#include <gtest/gtest.h>

#include "profiler/base/log.h"
#include "tests/unit/engine/model/play.h"

namespace offload::model {
namespace {

class BegunCopies : public testing::Test {
 protected:
  void SetUp() override {
    set_log_sink([](std::string_view) {});
  }
};

// An eviction whose second copy fails.
void half_leave(World& w, int tensor) {
  w.port.fail_call(Call::kCopy, 2);
  w.press(tensor);
  w.port.fail_call(Call::kCopy, 0);
  EXPECT_EQ(w.states(tensor), "R");
}

// What the buffer is freed to, and split for.
TEST_F(BegunCopies, AnExtentIsNotDestroyedUnderOne) {
  expect_holds({.device_granules = 3}, [](World& w) {
    const int s0 = w.add_stream();
    const int s1 = w.add_stream();
    const int z = w.allocate(granules(1));
    const int a = w.allocate(granules(2));
    w.op(s0, {write(a)});
    w.idle(s0, 4);
    w.run_all();
    w.op(s1, {write(z)});
    w.idle(s0, 4);
    w.press(z);  // its copy holds up those behind it
    half_leave(w, a);
    w.free_async(a, s0);
    w.run(s0);
    w.worker();
    for (int i = 0; i < 2; ++i) w.op(s0, {write(w.allocate(granules(1)))});
  });
}

// A buffer that could not come back whole: what it was given goes to another, on another stream.
TEST_F(BegunCopies, AnExtentPassesOnBehindOne) {
  expect_holds({.device_granules = 2}, [](World& w) {
    const int s0 = w.add_stream();
    const int s1 = w.add_stream();
    const int a = w.allocate(granules(2));
    w.op(s0, {write(a)});
    w.idle(s0, 4);
    w.press(a);
    const int c = w.allocate(granules(2));
    w.free_async(c, s0);
    w.port.fail_call(Call::kCopy, 2);
    EXPECT_NE(w.try_op(s0, {read(a)}), Status::kOk);
    w.port.fail_call(Call::kCopy, 0);
    const int d = w.allocate(granules(2));
    w.op(s1, {write(d)});
    w.op(s1, {update(d)});
    w.check(d);
    w.idle(s1, 4);
    w.op(s0, {read(a)});
  });
}

}  // namespace
}  // namespace offload::model
