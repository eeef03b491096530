// SPDX-License-Identifier: Apache-2.0
#include "policies/pressure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace offload {
namespace {

constexpr std::uint64_t kMega = 1 << 20;

Candidate buffer(std::uint64_t id, std::uint64_t megabytes, std::uint64_t birth,
                 std::uint64_t last_use, bool eligible = true) {
  return {.id = id,
          .bytes = megabytes * kMega,
          .birth_position = birth,
          .last_use_position = last_use,
          .eligible = eligible};
}

std::vector<std::uint64_t> chosen(PressurePolicy& policy, const std::vector<Candidate>& candidates,
                                  std::uint64_t wanted_bytes, std::uint64_t position) {
  std::vector<std::uint32_t> order(candidates.size());
  std::size_t count = policy.choose_victims(candidates, wanted_bytes, position, order);
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < count; ++i) ids.push_back(candidates[order[i]].id);
  return ids;
}

using Ids = std::vector<std::uint64_t>;

TEST(Pressure, IdleLongestFirstUntilEnough) {
  PressurePolicy policy(PolicyConfig{});
  std::vector<Candidate> candidates = {buffer(1, 8, 0, 50), buffer(2, 8, 5, 20),
                                       buffer(3, 8, 9, 90), buffer(4, 8, 3, 30)};
  EXPECT_EQ(chosen(policy, candidates, 1, 100), (Ids{2}));
  EXPECT_EQ(chosen(policy, candidates, 16 * kMega, 100), (Ids{2, 4}));
  EXPECT_EQ(chosen(policy, candidates, 16 * kMega + 1, 100), (Ids{2, 4, 1}));
  EXPECT_EQ(chosen(policy, candidates, 1000 * kMega, 100), (Ids{2, 4, 1, 3}));
  EXPECT_EQ(chosen(policy, candidates, 0, 100), (Ids{}));
  EXPECT_EQ(chosen(policy, {}, 1, 100), (Ids{}));
}

TEST(Pressure, SmallAndIneligibleBuffersStay) {
  PressurePolicy policy(PolicyConfig{.alpha = 0.1, .min_size_bytes = 4 * kMega});
  EXPECT_EQ(chosen(policy, {buffer(1, 3, 0, 1), buffer(2, 4, 0, 2), buffer(3, 9, 0, 3, false)},
                   100 * kMega, 50),
            (Ids{2}));
}

TEST(Pressure, OfEqualsTheLargerGoesFirst) {
  PressurePolicy policy(PolicyConfig{});
  EXPECT_EQ(chosen(policy, {buffer(1, 4, 0, 7), buffer(2, 32, 0, 7), buffer(3, 16, 0, 7)},
                   100 * kMega, 50),
            (Ids{2, 3, 1}));
}

TEST(Pressure, LongLivedBuffersComeLast) {
  PressurePolicy policy(PolicyConfig{});
  // A step is 1000 positions; activations live up to 900 of them.
  for (std::uint64_t i = 0; i < 100; ++i) policy.freed(8 * kMega, 9 * i);
  std::uint64_t limit = policy.long_lived_age();
  EXPECT_GE(limit, 2 * 855u);
  EXPECT_LE(limit, 2 * 855u * 5 / 4 + 2);
  // Weights: born first, idle longest, and in need every step.
  std::vector<Candidate> candidates = {buffer(1, 64, 0, 4001), buffer(2, 64, 1, 4002),
                                       buffer(3, 8, 4100, 4110), buffer(4, 8, 4200, 4205)};
  EXPECT_EQ(chosen(policy, candidates, 1000 * kMega, 4900), (Ids{3, 4, 1, 2}));
}

TEST(Pressure, BeforeAnythingWasFreedAllAreYoung) {
  PressurePolicy policy(PolicyConfig{});
  for (std::uint64_t i = 0; i < PressurePolicy::kFewestFrees - 1; ++i) policy.freed(8 * kMega, 1);
  EXPECT_EQ(chosen(policy, {buffer(1, 8, 0, 5), buffer(2, 8, 90, 95)}, 100 * kMega, 100),
            (Ids{1, 2}));
  policy.freed(8 * kMega, 1);
  EXPECT_EQ(chosen(policy, {buffer(1, 8, 0, 5), buffer(2, 8, 99, 99)}, 100 * kMega, 100),
            (Ids{2, 1}));
}

TEST(Pressure, SmallFreesSayNothingAboutAges) {
  PressurePolicy policy(PolicyConfig{});
  for (int i = 0; i < 1000; ++i) policy.freed(kMega, 1);
  EXPECT_EQ(policy.long_lived_age(), UINT64_MAX);
}

TEST(Pressure, FollowsTheWatermark) {
  PressurePolicy policy(PolicyConfig{.alpha = 0.1});
  DeviceMemory memory{.total_bytes = 1000 * kMega, .mapped_bytes = 900 * kMega};
  EXPECT_EQ(policy.bytes_to_free(memory), 0u);
  memory.mapped_bytes = 950 * kMega;
  EXPECT_EQ(policy.bytes_to_free(memory), 100 * kMega);
  memory.mapped_bytes = 851 * kMega;
  EXPECT_EQ(policy.bytes_to_free(memory), kMega);
  memory.mapped_bytes = 850 * kMega;
  EXPECT_EQ(policy.bytes_to_free(memory), 0u);
  memory.mapped_bytes = 2000 * kMega;  // more than the limit: a limit that was lowered
  EXPECT_EQ(policy.bytes_to_free(memory), 150 * kMega);
}

TEST(Pressure, KeysAgreeWithTheOrder) {
  PressurePolicy policy(PolicyConfig{});
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) policy.freed(8 * kMega, random() % 300);
  std::vector<Candidate> candidates;
  for (std::uint64_t id = 0; id < 300; ++id) {
    std::uint64_t birth = random() % 5000;
    candidates.push_back(
        buffer(id, 4 + random() % 60, birth, birth + random() % 300, random() % 5 != 0));
  }
  std::vector<std::uint32_t> order(candidates.size());
  std::size_t count = policy.choose_victims(candidates, UINT64_MAX, 5400, order);
  std::size_t eligible = static_cast<std::size_t>(std::count_if(
      candidates.begin(), candidates.end(), [](const Candidate& c) { return c.eligible; }));
  ASSERT_EQ(count, eligible);
  for (std::size_t i = 1; i < count; ++i) {
    EXPECT_LE(policy.victim_key(candidates[order[i - 1]], 5400),
              policy.victim_key(candidates[order[i]], 5400));
  }
  std::vector<std::uint32_t> unique(order.begin(),
                                    order.begin() + static_cast<std::ptrdiff_t>(count));
  std::sort(unique.begin(), unique.end());
  EXPECT_EQ(std::unique(unique.begin(), unique.end()), unique.end());
}

}  // namespace
}  // namespace offload
