// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engine/model/play.h"

namespace offload::model {

namespace {

bool run(const Settings& settings, const Program& program, Schedule& schedule,
         const std::string& name, bool check_books, Outcome* outcome) {
  ++outcome->runs;
  try {
    World world(settings, schedule);
    world.check_books = check_books;
    program(world);
    world.finish();
    return true;
  } catch (const Failure& failure) {
    outcome->failure = failure;
  }
  ++outcome->failures;
  outcome->schedule = name;
  return false;
}

}  // namespace

Outcome play(const Settings& settings, const Program& program, const Play& how) {
  Outcome outcome;
  for (const std::string& name : schedule_names(how.seeds)) {
    const std::unique_ptr<Schedule> schedule = make_schedule(name);
    if (!run(settings, program, *schedule, name, how.check_books, &outcome)) return outcome;
  }
  Exhaustive exhaustive;
  for (uint64_t i = 0; i < how.orders; ++i) {
    const std::string name = "exhaustive, order " + std::to_string(i);
    if (!run(settings, program, exhaustive, name, how.check_books, &outcome)) return outcome;
    if (!exhaustive.next()) break;
  }
  return outcome;
}

void expect_holds(const Settings& settings, const Program& program, const Play& how) {
  const Outcome outcome = play(settings, program, how);
  EXPECT_EQ(outcome.failures, 0u) << "schedule " << outcome.schedule << ": "
                                  << name_of(outcome.failure.kind) << ": " << outcome.failure.what;
}

}  // namespace offload::model
