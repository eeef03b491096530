// SPDX-License-Identifier: Apache-2.0
#include "policies/ages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace offload {
namespace {

TEST(Ages, SmallAgesAreExact) {
  AgeHistogram ages;
  EXPECT_EQ(ages.quantile(0.95), 0u);
  for (std::uint64_t age : {0, 1, 1, 2, 3}) ages.add(age);
  EXPECT_EQ(ages.quantile(0.2), 0u);
  EXPECT_EQ(ages.quantile(0.6), 1u);
  EXPECT_EQ(ages.quantile(1.0), 3u);
}

TEST(Ages, QuantilesAreAtMostAQuarterTooHigh) {
  std::mt19937_64 random(1);
  for (std::uint64_t scale : {10u, 1000u, 1000000u}) {
    AgeHistogram ages;
    std::vector<std::uint64_t> exact;
    for (int i = 0; i < 4000; ++i) {
      std::uint64_t age = random() % scale;
      exact.push_back(age);
      ages.add(age);
    }
    std::sort(exact.begin(), exact.end());
    for (double part : {0.5, 0.95, 0.99}) {
      double truth = static_cast<double>(exact[static_cast<std::size_t>(part * 4000) - 1]);
      double found = static_cast<double>(ages.quantile(part));
      EXPECT_GE(found, truth) << scale << " " << part;
      EXPECT_LE(found, truth * 1.25 + 1) << scale << " " << part;
    }
  }
}

TEST(Ages, TheLargestAgeFits) {
  AgeHistogram ages;
  ages.add(UINT64_MAX);
  EXPECT_EQ(ages.quantile(0.95), UINT64_MAX);
}

TEST(Ages, AnOldPhaseFades) {
  auto ages = std::make_unique<AgeHistogram>();
  for (int i = 0; i < 8000; ++i) ages->add(100000);
  for (int i = 0; i < 60000; ++i) ages->add(10);
  EXPECT_LT(ages->quantile(0.95), 20u);
}

}  // namespace
}  // namespace offload
