// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sets of programs to explore: all sequences of actions up to a length over a small alphabet, after
// a prologue that fills the device.

#include <cstdint>
#include <string>
#include <vector>

#include "interpose/engine/clauses.h"
#include "tests/model/program.h"
#include "tests/model/search.h"

namespace offload::model {

struct ProgramSet {
  std::string name;
  std::string what;  // in a sentence
  Program frame;     // settings, bounds, prologue; the threads are filled in
  std::vector<Action> alphabet = {};
  std::vector<Action> other = {};  // of the second thread; empty: one thread
  uint32_t length = 3;             // actions of each thread
  std::vector<Action> third = {};
  uint64_t count() const;
  Program program(uint64_t index) const;
  // A longer one over the same alphabet, by chance, without a bound on deviations.
  Program longer(uint64_t seed) const;
};

const std::vector<ProgramSet>& program_sets();

struct SetOptions {
  uint64_t every = 1;     // each n-th program only
  double seconds = 0;     // 0: without end
  uint64_t seed = 1;      // which come first, where `seconds` may not suffice for all
  uint64_t states = 0;    // of one program; 0: as the set says
  long index = -1;        // one program only
  uint64_t failures = 3;  // then the set is left
  bool longer = false;    // `index` is a seed
  bool again = false;     // with these choices
  Choices choices = {};
};

struct SetResult {
  std::string name;
  uint64_t programs = 0;
  uint64_t of = 0;
  uint64_t states = 0;
  uint64_t seen_again = 0;
  uint64_t ends = 0;
  uint64_t deepest = 0;
  uint64_t cut_short = 0;  // programs that have more states than they were given
  uint64_t for_time = 0;   // programs that were left out
  double seconds = 0;
  std::vector<std::string> failures;  // and how to play each again
  std::string text() const;
};

// Each clause dropped, with the program that is known to need it.
struct NeededBy {
  Clause clause;
  const char* name;
  Program program;
  // Instead of all ways through that program: some by chance through longer ones of this set.
  const char* longer = nullptr;
  // Dropped with and without the clause: another that would do instead, where it may.
  Clause instead = Clause::kCount;
};
const std::vector<NeededBy>& clause_table();
// Says for each where it was caught. False: one was not, or the program fails with all clauses.
bool explore_clauses();

// Longer programs for so long, some ways through each.
bool wander_sets(double seconds, uint64_t seed, const std::string& only);

SetResult explore_set(const ProgramSet& set, const SetOptions& options);

}  // namespace offload::model
