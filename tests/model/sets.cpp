// SPDX-License-Identifier: Apache-2.0
#include "tests/model/sets.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <random>

namespace offload::model {

namespace {

uint64_t power(uint64_t base, uint32_t exponent) {
  uint64_t result = 1;
  for (uint32_t i = 0; i < exponent; ++i) result *= base;
  return result;
}

std::vector<Action> sequence(const std::vector<Action>& alphabet, uint64_t index, uint32_t length) {
  std::vector<Action> actions;
  for (uint32_t i = 0; i < length; ++i) {
    actions.push_back(alphabet[index % alphabet.size()]);
    index /= alphabet.size();
  }
  return actions;
}

}  // namespace

uint64_t ProgramSet::count() const {
  uint64_t all = power(alphabet.size(), length);
  for (const auto* letters : {&other, &third}) {
    if (!letters->empty()) all *= power(letters->size(), length);
  }
  return all;
}

Program ProgramSet::program(uint64_t index) const {
  Program made = frame;
  made.name = name + " " + std::to_string(index);
  for (const auto* letters : {&alphabet, &other, &third}) {
    if (letters->empty()) continue;
    const uint64_t sequences = power(letters->size(), length);
    made.threads.push_back(sequence(*letters, index % sequences, length));
    index /= sequences;
  }
  return made;
}

Program ProgramSet::longer(uint64_t seed) const {
  std::mt19937_64 random(seed);
  Program made = frame;
  made.name = name + " seed " + std::to_string(seed);
  made.bounds.deviations = 1'000'000;
  made.bounds.eager = random() % 4 == 0;
  for (const auto* letters : {&alphabet, &other, &third}) {
    if (letters->empty()) continue;
    std::vector<Action> actions;
    for (uint64_t left = 4 + random() % 12; left > 0; --left) {
      actions.push_back((*letters)[random() % letters->size()]);
    }
    made.threads.push_back(std::move(actions));
  }
  return made;
}

bool wander_sets(double seconds, uint64_t seed, const std::string& only) {
  constexpr uint64_t kWays = 40;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  uint64_t programs = 0;
  uint64_t choices = 0;
  uint64_t failed = 0;
  for (; std::chrono::steady_clock::now() < end && failed < 3; ++seed) {
    for (const ProgramSet& set : program_sets()) {
      if (only != "all" && only != set.name) continue;
      const Program program = set.longer(seed);
      const Found found = wander(program, kWays, seed);
      ++programs;
      choices += found.states;
      if (!found.failed) continue;
      ++failed;
      std::printf(
          "%s\n    %s: %s\n    again with: engine_explorer --set %s --longer %llu --choices %s "
          "--trace 1\n",
          program.text().c_str(), name_of(found.failure.kind), found.failure.what.c_str(),
          set.name.c_str(), static_cast<unsigned long long>(seed), text_of(found.choices).c_str());
      std::fflush(stdout);
    }
  }
  std::printf("%llu longer programs, %llu ways through each, %llu choices, %llu failed\n",
              static_cast<unsigned long long>(programs), static_cast<unsigned long long>(kWays),
              static_cast<unsigned long long>(choices), static_cast<unsigned long long>(failed));
  return failed == 0;
}

namespace {

// Steps of this size meet each of `count` once.
uint64_t stride(uint64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (;;) {
    const uint64_t step = 1 + random() % std::max<uint64_t>(count, 1);
    if (std::gcd(step, count) == 1) return step;
  }
}

}  // namespace

SetResult explore_set(const ProgramSet& set, const SetOptions& options) {
  SetResult result;
  result.name = set.name;
  result.of = set.count();
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const uint64_t chosen = (result.of + options.every - 1) / options.every;
  // Where the time does not suffice for all of them, each seed tries others first.
  const bool mixed = options.seconds > 0 && options.every == 1;
  const uint64_t step = mixed ? stride(chosen, options.seed) : 1;
  for (uint64_t k = 0; k < chosen; ++k) {
    uint64_t i = (mixed ? (options.seed + k * step) % chosen : k) * options.every;
    if (options.index >= 0) i = static_cast<uint64_t>(options.index);
    if (options.seconds > 0 && elapsed() > options.seconds) {
      result.for_time = chosen - k;
      break;
    }
    Program program = options.longer ? set.longer(i) : set.program(i);
    if (options.states != 0) program.bounds.states = options.states;
    const Found found = options.again ? replay(program, options.choices) : explore(program);
    ++result.programs;
    result.states += found.states;
    result.seen_again += found.seen_again;
    result.ends += found.ends;
    result.deepest = std::max(result.deepest, found.deepest);
    result.cut_short += found.cut_short ? 1 : 0;
    if (found.failed) {
      result.failures.push_back(program.text() + "\n    " + name_of(found.failure.kind) + ": " +
                                found.failure.what + "\n    again with: engine_explorer --set " +
                                set.name + " --index " + std::to_string(i) + " --choices " +
                                text_of(found.choices) + " --trace 1");
      if (result.failures.size() == options.failures) break;
    }
    if (options.index >= 0) break;
  }
  result.seconds = elapsed();
  return result;
}

std::string SetResult::text() const {
  char line[256];
  std::snprintf(
      line, sizeof(line),
      "%-12s %6llu of %llu programs, %9llu states (%llu met again), %8llu ends, at most "
      "%llu choices deep, %llu cut short, %llu left out for time, %.1f s%s",
      name.c_str(), static_cast<unsigned long long>(programs), static_cast<unsigned long long>(of),
      static_cast<unsigned long long>(states), static_cast<unsigned long long>(seen_again),
      static_cast<unsigned long long>(ends), static_cast<unsigned long long>(deepest),
      static_cast<unsigned long long>(cut_short), static_cast<unsigned long long>(for_time),
      seconds, failures.empty() ? "" : ", FAILED:");
  std::string all = line;
  for (const std::string& failure : failures) all += "\n  " + failure;
  return all;
}

}  // namespace offload::model
