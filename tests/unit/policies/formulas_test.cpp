// SPDX-License-Identifier: Apache-2.0
#include "policies/formulas.h"

#include <gtest/gtest.h>

namespace offload {
namespace {

constexpr std::uint64_t kGB = 1000000000;

TEST(Formulas, Activations) {
  // 32 layers of 4096 tokens at width 4096, one sequence: 32 MiB a layer, 1 GiB in all.
  EXPECT_EQ(a_layer_bytes(1, 4096, 4096), 33554432u);
  EXPECT_EQ(m_act_bytes(1, 32, 4096, 4096), 1073741824u);
  EXPECT_EQ(m_act_bytes(8, 32, 4096, 4096), 8 * m_act_bytes(1, 32, 4096, 4096));
}

TEST(Formulas, PeakWithCheckpoints) {
  EXPECT_EQ(m_peak_bytes(14 * kGB, 4, a_layer_bytes(1, 4096, 4096)), 14 * kGB + 4 * 33554432);
}

TEST(Formulas, EpochWithoutOverlap) {
  const std::uint64_t volumes[] = {10 * kGB, 15 * kGB};
  double out = t_transfer(volumes, 25e9);
  double in = t_transfer(volumes, 50e9);
  EXPECT_DOUBLE_EQ(out, 1.0);
  EXPECT_DOUBLE_EQ(in, 0.5);
  EXPECT_DOUBLE_EQ(t_epoch(10, out, in), 11.5);
}

TEST(Formulas, PrefetchStartsACopyBeforeTheNeed) {
  // Needed at 10 s, 5 s of copy, no margin: start at 5 s.
  EXPECT_DOUBLE_EQ(t_prefetch(10, 125 * kGB, 25e9, 0), 5);
  EXPECT_DOUBLE_EQ(t_prefetch(10, 125 * kGB, 25e9, 0.5), 4.5);
}

TEST(Formulas, Watermark) {
  EXPECT_EQ(theta_bytes(0.1, 80 * kGB), 8 * kGB);
  EXPECT_EQ(theta_bytes(0.3, 1000), 300u);
}

TEST(Formulas, Utilisation) {
  // 40 % of the time in exposed transfer: 60 %.
  EXPECT_DOUBLE_EQ(u_gpu(6, 4), 0.6);
  EXPECT_DOUBLE_EQ(u_gpu(5, 0), 1);
  EXPECT_DOUBLE_EQ(u_gpu(0, 0), 1);
}

}  // namespace
}  // namespace offload
