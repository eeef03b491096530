// SPDX-License-Identifier: Apache-2.0
#include "policies/watermark.h"

#include <gtest/gtest.h>

namespace offload {
namespace {

TEST(Watermark, TurnsOnBelowThetaAndOffAboveHalfAsMuchAgain) {
  Watermark watermark(0.1);
  struct Step {
    std::uint64_t free;
    std::uint64_t wanted;
    bool on;
  };
  // Theta is 100, off at 150.
  for (const Step& step :
       {Step{500, 0, false}, Step{100, 0, false}, Step{99, 51, true}, Step{100, 50, true},
        Step{149, 1, true}, Step{120, 30, true}, Step{150, 0, false}, Step{120, 0, false},
        Step{100, 0, false}, Step{0, 150, true}, Step{1000, 0, false}}) {
    EXPECT_EQ(watermark.update(1000, step.free), step.wanted) << step.free;
    EXPECT_EQ(watermark.is_on(), step.on) << step.free;
  }
}

TEST(Watermark, NoneNeverTurnsOn) {
  Watermark watermark(0);
  EXPECT_EQ(watermark.update(1000, 0), 0u);
  EXPECT_FALSE(watermark.is_on());
}

TEST(Watermark, AHighOneAsksForNoMoreThanThereIs) {
  Watermark watermark(0.9);
  EXPECT_EQ(watermark.update(1000, 100), 900u);
  EXPECT_EQ(watermark.update(1000, 1000), 0u);
  EXPECT_FALSE(watermark.is_on());
}

}  // namespace
}  // namespace offload
