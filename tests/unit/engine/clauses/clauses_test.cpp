// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <iterator>
#include <set>

#include "profiler/base/log.h"
#include "tests/unit/engine/clauses/scenarios.h"

namespace offload::model {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// Slow, and what a sanitizer finds it finds under nearly every schedule.
constexpr Play kHow = {.seeds = 20, .orders = 100};
#else
constexpr Play kHow = {};
#endif

std::vector<Scenario> all_scenarios() {
  std::vector<Scenario> all;
  for (auto* group : {leave_scenarios, copy_scenarios, give_scenarios, restore_scenarios,
                      host_scenarios, flag_scenarios, graph_scenarios, in_place_scenarios}) {
    std::vector<Scenario> part = group();
    std::move(part.begin(), part.end(), std::back_inserter(all));
  }
  return all;
}

std::string scenario_name(const testing::TestParamInfo<Scenario>& scenario) {
  return scenario.param.name;
}

class Clauses : public testing::TestWithParam<Scenario> {
 protected:
  void SetUp() override {
    set_log_sink([](std::string_view) {});
  }
  void TearDown() override { restore_clauses(); }
};

TEST_P(Clauses, TheProgramHolds) {
  if (GetParam().instead != Clause::kCount) drop(GetParam().instead);
  expect_holds(GetParam().settings, GetParam().program, kHow);
}

TEST_P(Clauses, TheProgramFailsWithoutTheClause) {
  if (GetParam().instead != Clause::kCount) drop(GetParam().instead);
  drop(GetParam().clause);
  const Outcome outcome =
      play(GetParam().settings, GetParam().program, {.seeds = 300, .check_books = false});
  restore_clauses();
  EXPECT_EQ(outcome.failures, 1u) << "in " << outcome.runs << " runs";
  EXPECT_NE(outcome.failure.kind, Failure::Kind::kInvariant) << outcome.failure.what;
  if (outcome.failures != 0) {
    RecordProperty("failure", std::string(name_of(outcome.failure.kind)) + ": " +
                                  outcome.failure.what + ", schedule " + outcome.schedule);
    RecordProperty("runs", static_cast<int>(outcome.runs));
  }
}

INSTANTIATE_TEST_SUITE_P(Each, Clauses, testing::ValuesIn(all_scenarios()), scenario_name);

TEST(ClauseTable, EveryClauseHasAProgramThatNeedsIt) {
  std::set<Clause> needed;
  for (const Scenario& scenario : all_scenarios()) needed.insert(scenario.clause);
  needed.insert(std::begin(kExploredOnly), std::end(kExploredOnly));
  for (int i = 0; i < static_cast<int>(Clause::kCount); ++i) {
    EXPECT_EQ(needed.count(static_cast<Clause>(i)), 1u) << "clause number " << i;
  }
}

}  // namespace
}  // namespace offload::model
