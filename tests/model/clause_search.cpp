// SPDX-License-Identifier: Apache-2.0
// Drops each clause, and looks for the way through its program that needs it.

#include <chrono>
#include <cstdio>
#include <initializer_list>
#include <set>

#include "tests/model/sets.h"

namespace offload::model {

namespace {

Program from_longer(const char* name, uint64_t seed) {
  for (const ProgramSet& set : program_sets()) {
    if (set.name == name) return set.longer(seed);
  }
  return {};
}

struct Tried {
  Program program;
  Found without;
  Found held;
  bool caught() const { return without.failed && !held.failed; }
};

template <typename Body>
Found with_dropped(std::initializer_list<Clause> clauses, Body&& body) {
  for (const Clause clause : clauses) {
    if (clause != Clause::kCount) drop(clause);
  }
  Found found = body();
  restore_clauses();
  return found;
}

// All ways, with as few deviations as will do.
Tried try_all(const NeededBy& needed) {
  Tried tried{needed.program, {}, {}};
  tried.without = with_dropped({needed.instead, needed.clause}, [&] {
    Found found;
    for (uint32_t most = 0; !found.failed && most <= needed.program.bounds.deviations; ++most) {
      tried.program.bounds.deviations = most;
      found = explore(tried.program);
    }
    return found;
  });
  tried.held = with_dropped({needed.instead}, [&] { return explore(needed.program); });
  return tried;
}

// Some ways through longer programs of a set. Which of them shows it changes with the engine.
Tried try_longer(const NeededBy& needed) {
  constexpr uint64_t kWays = 40;
  constexpr uint64_t kSeeds = 200;
  Tried tried;
  for (uint64_t seed = 1; seed <= kSeeds && !tried.caught(); ++seed) {
    tried.program = from_longer(needed.longer, seed);
    const auto some = [&] { return wander(tried.program, kWays, seed); };
    tried.without = with_dropped({needed.instead, needed.clause}, some);
    if (tried.without.failed) tried.held = with_dropped({needed.instead}, some);
  }
  return tried;
}

}  // namespace

bool explore_clauses() {
  bool good = true;
  std::set<Clause> caught;
  for (const NeededBy& each : clause_table()) {
    const auto begin = std::chrono::steady_clock::now();
    const Tried tried = each.longer != nullptr ? try_longer(each) : try_all(each);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf(
        "%-22s %s, %u deviations, %zu choices deep, after %llu states; with it %llu%s (%s; %.1f "
        "s)\n",
        each.name, tried.without.failed ? name_of(tried.without.failure.kind) : "NOT CAUGHT",
        tried.program.bounds.deviations, tried.without.choices.size(),
        static_cast<unsigned long long>(tried.without.states),
        static_cast<unsigned long long>(tried.held.states), tried.held.failed ? ", WHICH FAIL" : "",
        tried.program.text().c_str(), seconds);
    if (tried.held.failed) {
      std::printf("    %s\n    engine_explorer --clause %s --choices %s --trace 1",
                  tried.held.failure.what.c_str(), each.name, text_of(tried.held.choices).c_str());
      if (each.instead != Clause::kCount)
        std::printf(" --without %d", static_cast<int>(each.instead));
      std::printf("\n");
    }
    std::fflush(stdout);
    if (tried.caught()) caught.insert(each.clause);
    good = good && tried.caught();
  }
  for (int i = 0; i < static_cast<int>(Clause::kCount); ++i) {
    if (caught.count(static_cast<Clause>(i)) != 0) continue;
    std::printf("no program for clause number %d\n", i);
    good = false;
  }
  return good;
}

}  // namespace offload::model
