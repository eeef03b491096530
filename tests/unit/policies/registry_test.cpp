// SPDX-License-Identifier: Apache-2.0
#include "policies/registry.h"

#include <gtest/gtest.h>

namespace offload {
namespace {

TEST(Registry, EveryNameOfTheOptionMakesThatPolicy) {
  std::span<const std::string_view> names = words_of<PolicyName>();
  ASSERT_GE(names.size(), 2u);
  for (std::size_t i = 0; i < names.size(); ++i) {
    PolicyStorage storage;
    Policy& policy = make_policy(static_cast<PolicyName>(i), {}, storage);
    EXPECT_EQ(policy.name(), names[i]);
    EXPECT_EQ(static_cast<void*>(&policy), static_cast<void*>(storage.bytes));
  }
}

TEST(Registry, NoneMovesNothing) {
  PolicyStorage storage;
  Policy& none = make_policy(PolicyName::kNone, {}, storage);
  EXPECT_FALSE(none.moves());
  EXPECT_EQ(none.bytes_to_free({.total_bytes = 100, .mapped_bytes = 100}), 0u);
  Candidate candidate{
      .id = 1, .bytes = 1 << 30, .birth_position = 0, .last_use_position = 0, .eligible = true};
  std::uint32_t order[1];
  EXPECT_EQ(none.choose_victims({&candidate, 1}, 1, 1000, order), 0u);
}

TEST(Registry, OptionsReachThePolicy) {
  Options options{};
  set_defaults(options);
  set_option(options, OptionId::watermark, "20%", OptionSource::kEnvironment);
  set_option(options, OptionId::min_size_bytes, "64KiB", OptionSource::kEnvironment);
  PolicyConfig config = policy_config(options, 1 << 30, 2 << 20);
  EXPECT_DOUBLE_EQ(config.alpha, 0.2);
  EXPECT_EQ(config.min_size_bytes, 65536u);
  PolicyStorage storage;
  Policy& pressure = make_policy(PolicyName::kPressure, config, storage);
  EXPECT_EQ(pressure.bytes_to_free({.total_bytes = 1000, .mapped_bytes = 801}), 101u);
}

TEST(Registry, TheLeastSizeThatMovesIsLessOnASmallCardUnlessItIsSet) {
  constexpr std::uint64_t kMega = 1 << 20;
  Options options{};
  set_defaults(options);
  EXPECT_EQ(least_moved_bytes(options, 24576 * kMega, 2 * kMega), 4 * kMega);
  EXPECT_EQ(least_moved_bytes(options, 1024 * kMega, 2 * kMega), 4 * kMega);
  EXPECT_EQ(least_moved_bytes(options, 256 * kMega, 2 * kMega), kMega);
  EXPECT_EQ(least_moved_bytes(options, 16 * kMega, 2 * kMega), kMega / 4);
  EXPECT_EQ(policy_config(options, 256 * kMega, 2 * kMega).min_size_bytes, kMega);
  set_option(options, OptionId::min_size_bytes, "4MiB", OptionSource::kEnvironment);
  EXPECT_EQ(least_moved_bytes(options, 256 * kMega, 2 * kMega), 4 * kMega);
}

}  // namespace
}  // namespace offload
