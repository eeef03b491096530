// SPDX-License-Identifier: Apache-2.0
// A few seconds of programs by chance; engine_soak runs as many as one likes.

#include <gtest/gtest.h>

#include "profiler/base/log.h"
#include "tests/unit/engine/model/random_program.h"

namespace offload::model {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSeeds = 60;
#else
constexpr uint64_t kSeeds = 250;
#endif

class RandomPrograms : public testing::TestWithParam<Flavour> {};

TEST_P(RandomPrograms, Hold) {
  set_log_sink([](std::string_view) {});
  RandomResult sum;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const RandomResult result = run_random(seed, GetParam(), 200);
    ASSERT_TRUE(result.held) << result.what;
    sum.ops += result.ops;
    sum.bytes_out += result.bytes_out;
    sum.bytes_in += result.bytes_in;
    sum.cancelled += result.cancelled;
    sum.parked_hits += result.parked_hits;
    sum.failed_calls += result.failed_calls;
  }
  // The programs go where they are meant to go.
  EXPECT_GT(sum.ops, 80 * kSeeds);
  EXPECT_GT(sum.bytes_out, kSeeds << 13);
  EXPECT_GT(sum.cancelled, kSeeds);
  EXPECT_GT(sum.parked_hits, kSeeds);
  if (GetParam() != Flavour::kHidden) {
    EXPECT_GT(sum.bytes_in, kSeeds << 13);
  }
  if (GetParam() == Flavour::kFailures || GetParam() == Flavour::kThreadsFailures) {
    EXPECT_GT(sum.failed_calls, 2 * kSeeds);
  }
}

std::string flavour_name(const testing::TestParamInfo<Flavour>& flavour) {
  std::string name = name_of(flavour.param);
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Each, RandomPrograms,
                         testing::Values(Flavour::kPlain, Flavour::kHidden, Flavour::kFlags,
                                         Flavour::kFailures, Flavour::kThreads,
                                         Flavour::kThreadsFailures),
                         flavour_name);

}  // namespace
}  // namespace offload::model
