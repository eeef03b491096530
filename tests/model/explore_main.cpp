// SPDX-License-Identifier: Apache-2.0
// Explores sets of small programs, or one again:
//   engine_explorer [--set NAME|all] [--every N] [--seconds N] [--states N] [--seed S]
//   engine_explorer --clauses 1              each clause dropped
//   engine_explorer --clause NAME [--without NUMBER] [--choices LIST] [--trace 1]   one's program
//   engine_explorer --wander SECONDS [--seed S] [--set NAME]   longer programs by chance
//   engine_explorer --set NAME --index I [--choices LIST] [--trace 1]

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "interpose/engine/clauses.h"
#include "profiler/base/log.h"
#include "tests/model/search.h"
#include "tests/model/sets.h"

using namespace offload::model;

namespace {

// The program of a clause; without choices as it plainly goes.
int play_clause(const std::string& name, const Choices& choices) {
  for (const NeededBy& each : clause_table()) {
    if (name != each.name) continue;
    const Found found = replay(each.program, choices);
    std::printf("%s: %s %s\n", each.program.text().c_str(),
                found.failed ? name_of(found.failure.kind) : "ends well",
                found.failure.what.c_str());
    return found.failed ? 1 : 0;
  }
  return 2;
}

bool is_option(const std::string& word) {
  for (const char* each :
       {"--set", "--every", "--seconds", "--states", "--index", "--longer", "--clauses", "--wander",
        "--seed", "--without", "--clause", "--first", "--trace", "--choices"}) {
    if (word == each) return true;
  }
  return false;
}

}  // namespace

int main(int count, char** words) {
  std::string set = "all";
  std::string choices;
  uint64_t every = 1;
  uint64_t states = 0;
  double seconds = 0;
  long index = -1;
  bool again = false;
  std::string clause;
  bool first = false;
  bool longer = false;
  bool clauses = false;
  double wander = 0;
  uint64_t seed = 1;
  for (int i = 1; i < count; i += 2) {
    const std::string option = words[i];
    if (!is_option(option) || i + 1 == count) {
      std::fprintf(
          stderr,
          "engine_explorer: %s: see tests/model/README.md for the options, each with a value\n",
          words[i]);
      return 2;
    }
    const char* value = words[i + 1];
    if (option == "--set") set = value;
    if (option == "--every") every = std::strtoull(value, nullptr, 10);
    if (option == "--seconds") seconds = std::strtod(value, nullptr);
    if (option == "--states") states = std::strtoull(value, nullptr, 10);
    if (option == "--index" || option == "--longer") index = std::strtol(value, nullptr, 10);
    if (option == "--longer") longer = true;
    if (option == "--clauses") clauses = true;
    if (option == "--wander") wander = std::strtod(value, nullptr);
    if (option == "--seed") seed = std::strtoull(value, nullptr, 10);
    if (option == "--without") {  // a clause, by its number; may be given again
      offload::drop(static_cast<offload::Clause>(std::strtol(value, nullptr, 10)));
    }
    if (option == "--clause") clause = value;
    if (option == "--first") first = true;  // failure is enough
    if (option == "--trace") World::tracing = true;
    if (option == "--choices") {
      choices = value;
      again = true;
    }
  }
  offload::set_log_sink([](std::string_view line) {
    if (World::tracing) std::fwrite(line.data(), 1, line.size(), stdout);
  });
  if (World::tracing) offload::set_log_level(offload::LogLevel::kTrace);
  if (seed == 0) {  // by chance
    seed = static_cast<uint64_t>(std::time(nullptr));
    std::printf("--seed %llu\n", static_cast<unsigned long long>(seed));
  }
  if (!clause.empty()) return play_clause(clause, choices_of(choices));
  if (clauses) return explore_clauses() ? 0 : 1;
  if (wander > 0) return wander_sets(wander, seed, set) ? 0 : 1;
  bool failed = false;
  for (const ProgramSet& each : program_sets()) {
    if (set != "all" && set != each.name) continue;
    const SetResult result = explore_set(each, {.every = every,
                                                .seconds = seconds,
                                                .seed = seed,
                                                .states = states,
                                                .index = index,
                                                .failures = first ? 1u : 3u,
                                                .longer = longer,
                                                .again = again,
                                                .choices = choices_of(choices)});
    std::printf("%s\n", result.text().c_str());
    std::fflush(stdout);
    failed = failed || !result.failures.empty();
    if (first && failed) break;
  }
  return failed ? 1 : 0;
}
