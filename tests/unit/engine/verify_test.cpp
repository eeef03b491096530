// SPDX-License-Identifier: Apache-2.0
// Round trips under OFFLOAD_VERIFY: those that are right, and one that is not.

#include <gtest/gtest.h>

#include "profiler/base/log.h"
#include "tests/unit/engine/model/inspect.h"
#include "tests/unit/engine/model/play.h"

namespace offload::model {
namespace {

TEST(Verify, ARoundTripInPlaceIsVerified) {
  set_log_sink([](std::string_view) {});
  expect_holds({.device_granules = 4, .verify = true}, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(3));
    const int b = w.allocate(granules(3));
    w.op(s, {write(a)});
    w.op(s, {write(b)});
    w.op(s, {update(a), update(b)});
    w.check(a);
    w.check(b);
    EXPECT_EQ(w.statistics->verify_failures.get(), 0u);
  });
}

TEST(Verify, EveryRoundTripIsVerifiedWhenAsked) {
  expect_holds({.device_granules = 2, .verify = true}, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    w.op(s, {write(a)});
    w.idle(s, 3);
    const int b = w.allocate(granules(2));
    w.op(s, {write(b)});
    w.check(a);
    EXPECT_EQ(w.statistics->verify_failures.get(), 0u);
    EXPECT_GE(w.statistics->verified.get(), 1u);
  });
}

TEST(Verify, VerifyNoticesASlotThatChanged) {
  set_log_sink([](std::string_view) {});
  Eager eager;
  World w({.device_granules = 2, .verify = true}, eager);
  const int s = w.add_stream();
  const int a = w.allocate(granules(2));
  w.op(s, {write(a)});
  w.idle(s, 3);
  w.allocate(granules(2));
  w.worker();
  std::vector<Memory::Run> runs;
  ASSERT_TRUE(w.device.memory().resolve(w.tensor(a).address, kCellBytes, &runs));
  runs[0].cells[0] ^= 1;
  EXPECT_THROW(w.check(a), Failure);
  EXPECT_EQ(w.statistics->verify_failures.get(), 2u);  // in the slot, and back on the device
}

}  // namespace
}  // namespace offload::model
