// SPDX-License-Identifier: Apache-2.0
#include "interpose/memory/extents.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/memory/fixture.h"

namespace offload::model {
namespace {

struct ExtentsTest : testing::Test {
  ExtentsTest()
      : parts(eager, 10), extents(std::make_unique<Extents>(parts.port, *parts.statistics)) {}
  void start(uint64_t limit_granules, uint32_t largest = 16) {
    ASSERT_EQ(extents->initialise(kGranularity, limit_granules * kGranularity,
                                  2 * limit_granules * kGranularity, largest),
              Status::kOk);
  }
  Extent* create(uint32_t granules) {
    Extent* extent = extents->begin_create(granules);
    return extent == nullptr ? nullptr : extents->end_create(extent, extents->make(extent));
  }
  bool destroy(Extent* extent) { return extents->end_destroy(extent, extents->unmake(extent)); }
  Eager eager;
  Parts parts;
  std::unique_ptr<Extents> extents;
};

TEST_F(ExtentsTest, TheLimitHolds) {
  start(6);
  Extent* extent = create(4);
  ASSERT_NE(extent, nullptr);
  EXPECT_EQ(parts.device.memory().shown_at(extent->home), extent->handle);
  EXPECT_EQ(create(4), nullptr);
  EXPECT_EQ(extents->uncreated_bytes(), 2 * kGranularity);
  EXPECT_NE(create(2), nullptr);
  EXPECT_EQ(create(1), nullptr);
  EXPECT_EQ(extents->mapped_bytes(), 6 * kGranularity);
  extents->lift_limit();
  EXPECT_NE(create(4), nullptr);
}

// A device that refuses is believed, until somebody insists.
TEST_F(ExtentsTest, WhatTheDeviceRefusesIsRemembered) {
  start(16);
  ASSERT_NE(create(8), nullptr);
  EXPECT_EQ(create(4), nullptr);  // the device has 10
  EXPECT_LT(extents->uncreated_bytes(), 4 * kGranularity);
  const uint64_t calls = parts.port.calls(Call::kCreate);
  EXPECT_EQ(create(4), nullptr);
  EXPECT_EQ(parts.port.calls(Call::kCreate), calls);
  EXPECT_NE(create(2), nullptr);
  EXPECT_TRUE(extents->try_again());
  EXPECT_FALSE(extents->try_again());
  EXPECT_EQ(extents->uncreated_bytes(), 6 * kGranularity);
}

TEST_F(ExtentsTest, ThePoolIsFirstInFirstOutBySize) {
  start(10);
  Extent* a = create(2);
  Extent* b = create(2);
  Extent* c = create(1);
  extents->put(a);
  extents->put(b);
  extents->put(c);
  EXPECT_EQ(extents->pool_bytes(), 5 * kGranularity);
  EXPECT_EQ(extents->take(4u), nullptr);
  EXPECT_TRUE(extents->take(b));
  EXPECT_FALSE(extents->take(b));
  EXPECT_EQ(extents->take(2u), a);
  EXPECT_EQ(extents->take(2u), nullptr);
  EXPECT_EQ(extents->find([&](Extent& extent) { return &extent == c; }), c);
  EXPECT_EQ(extents->pool_bytes(), kGranularity);
}

TEST_F(ExtentsTest, DestroyGivesItBack) {
  start(10);
  Extent* a = create(8);
  const Address home = a->home;
  EXPECT_TRUE(destroy(a));
  EXPECT_EQ(parts.device.memory().device_used(), 0u);
  EXPECT_EQ(parts.device.memory().shown_at(home), 0u);
  EXPECT_EQ(extents->mapped_bytes(), 0u);
  Extent* b = create(8);
  parts.port.fail_call(Call::kUnmap, 1);
  EXPECT_FALSE(destroy(b));
  EXPECT_TRUE(extents->take(b));  // in the pool again
  EXPECT_EQ(extents->mapped_bytes(), 8 * kGranularity);
}

TEST_F(ExtentsTest, AFailedCreateLeavesNothing) {
  start(10);
  parts.port.fail_call(Call::kMap, 1);
  EXPECT_EQ(create(4), nullptr);
  EXPECT_EQ(parts.device.memory().device_used(), 0u);
  EXPECT_EQ(parts.device.memory().mappings(), 0u);
  extents->try_again();
  EXPECT_NE(create(4), nullptr);
}

TEST_F(ExtentsTest, FittingIsThePowerOfTwoBelow) {
  start(10, 8);
  EXPECT_EQ(extents->fitting(1), 1u);
  EXPECT_EQ(extents->fitting(7), 4u);
  EXPECT_EQ(extents->fitting(100), 8u);
}

}  // namespace
}  // namespace offload::model
