// SPDX-License-Identifier: Apache-2.0
// Many programs by chance, or one again:
//   engine_soak [--flavour NAME|all] [--seed FIRST, 0: by chance] [--runs N] [--steps N] [--seconds
//   N] [--trace 1]

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

#include "profiler/base/log.h"
#include "tests/unit/engine/model/random_program.h"
#include "tests/unit/engine/model/world.h"

using offload::model::Flavour;
using offload::model::RandomResult;

int main(int count, char** words) {
  std::string flavour = "all";
  uint64_t seed = 1;
  uint64_t runs = 1;
  uint32_t steps = 200;
  uint64_t seconds = 0;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string option = words[i];
    const char* value = words[i + 1];
    if (option == "--flavour") flavour = value;
    if (option == "--seed") seed = std::strtoull(value, nullptr, 10);
    if (option == "--runs") runs = std::strtoull(value, nullptr, 10);
    if (option == "--steps") steps = static_cast<uint32_t>(std::strtoul(value, nullptr, 10));
    if (option == "--trace") offload::model::World::tracing = true;
    if (option == "--seconds") seconds = std::strtoull(value, nullptr, 10);
  }
  if (seed == 0) seed = static_cast<uint64_t>(std::time(nullptr));
  offload::set_log_sink([](std::string_view line) {
    if (offload::model::World::tracing) std::fwrite(line.data(), 1, line.size(), stdout);
  });
  if (offload::model::World::tracing) offload::set_log_level(offload::LogLevel::kTrace);
  const auto begin = std::chrono::steady_clock::now();
  const auto over = [&] {
    return seconds != 0 && std::chrono::steady_clock::now() - begin > std::chrono::seconds(seconds);
  };
  int failed = 0;
  RandomResult sum;
  uint64_t done = 0;
  for (uint64_t i = 0; (seconds != 0 || i < runs) && !over() && failed < 10; ++i) {
    for (size_t kind = 0; kind < static_cast<size_t>(Flavour::kCount); ++kind) {
      const auto chosen = static_cast<Flavour>(kind);
      if (flavour != "all" && flavour != name_of(chosen)) continue;
      const RandomResult result = run_random(seed + i, chosen, steps);
      ++done;
      sum.ops += result.ops;
      sum.refused += result.refused;
      sum.bytes_out += result.bytes_out;
      sum.bytes_in += result.bytes_in;
      sum.cancelled += result.cancelled;
      sum.parked_hits += result.parked_hits;
      sum.failed_calls += result.failed_calls;
      sum.host_waits += result.host_waits;
      if (result.held) continue;
      ++failed;
      std::printf("%s\n", result.what.c_str());
      std::fflush(stdout);
    }
  }
  std::printf(
      "%llu programs, %d failed; ops %llu, refused %llu, MB out %llu, in %llu, cancelled %llu, "
      "parked "
      "hits %llu, failed calls %llu, host waits %llu\n",
      static_cast<unsigned long long>(done), failed, static_cast<unsigned long long>(sum.ops),
      static_cast<unsigned long long>(sum.refused),
      static_cast<unsigned long long>(sum.bytes_out >> 20),
      static_cast<unsigned long long>(sum.bytes_in >> 20),
      static_cast<unsigned long long>(sum.cancelled),
      static_cast<unsigned long long>(sum.parked_hits),
      static_cast<unsigned long long>(sum.failed_calls),
      static_cast<unsigned long long>(sum.host_waits));
  return failed == 0 ? 0 : 1;
}
