// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/workloads/kernels/dialect.h"

namespace {

float exponential_of(float x) {
  float lanes[kLanes];
  store(lanes, exponential(broadcast(x)));
  for (int i = 1; i < kLanes; ++i) EXPECT_EQ(lanes[i], lanes[0]);
  return lanes[0];
}

TEST(Lanes, exponential_is_right_to_three_units_in_the_last_place) {
  for (float x = -86.9f; x < 87.9f; x += 0.0371f) {
    const double expected = std::exp(double(x));
    ASSERT_NEAR(double(exponential_of(x)) / expected, 1.0, 3.0 * 0x1p-24) << x;
  }
  EXPECT_EQ(exponential_of(0.0f), 1.0f);
}

TEST(Lanes, exponential_saturates) {
  EXPECT_EQ(exponential_of(1e30f), exponential_of(88.0f));
  EXPECT_EQ(exponential_of(-1e30f), exponential_of(-87.0f));
  EXPECT_NEAR(double(exponential_of(1e30f)) / std::exp(88.0), 1.0, 1e-6);
  EXPECT_NEAR(double(exponential_of(-1e30f)) / std::exp(-87.0), 1.0, 1e-6);
}

TEST(Lanes, partial_access_leaves_the_rest_alone) {
  float from[kLanes], to[3 * kLanes];
  for (int i = 0; i < kLanes; ++i) from[i] = float(i + 1);
  for (float& value : to) value = -1.0f;
  store_some(to, 5, load_some(from, 7));
  EXPECT_EQ(to[4], 5.0f);
  EXPECT_EQ(to[5], -1.0f);
  scatter(to, 3, 6, load_some(from, 3));
  EXPECT_EQ(to[6], 3.0f);
  EXPECT_EQ(to[9], 0.0f);  // lanes past the third were read as zero
  EXPECT_EQ(to[18], -1.0f);
  EXPECT_EQ(sum_lanes(gather(from, 2, 8)), 64.0f);
  EXPECT_EQ(max_lanes(load(from)), 16.0f);
}

}  // namespace
