// SPDX-License-Identifier: Apache-2.0
// A few seconds of programs by chance; engine_soak runs as many as one likes.

#include <gtest/gtest.h>

#include "profiler/base/log.h"
#include "tests/unit/engine/model/random_program.h"

namespace offload::model {
namespace {

class RandomPrograms : public testing::TestWithParam<Flavour> {};

TEST_P(RandomPrograms, Hold) {
  set_log_sink([](std::string_view) {});
  RandomResult sum;
  for (uint64_t seed = 1; seed <= 250; ++seed) {
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
  EXPECT_GT(sum.ops, 20000u);
  EXPECT_GT(sum.bytes_out, 1u << 20);
  EXPECT_GT(sum.cancelled, 100u);
  EXPECT_GT(sum.parked_hits, 100u);
  if (GetParam() != Flavour::kHidden) {
    EXPECT_GT(sum.bytes_in, 1u << 20);
  }
  if (GetParam() == Flavour::kFailures || GetParam() == Flavour::kThreadsFailures) {
    EXPECT_GT(sum.failed_calls, 500u);
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
