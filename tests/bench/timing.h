// SPDX-License-Identifier: Apache-2.0
#pragma once
// What one call costs on a machine where others work too: the fastest of many short batches. A
// batch is far shorter than a scheduler's slice, so that some batches are left alone; the two that
// are compared take turns, so that both meet the same weather.

#include <algorithm>
#include <cstdint>
#include <limits>

#include <time.h>

namespace bench {

struct Effort {
  uint64_t batches = 400;
  uint64_t calls = 1000;  // in a batch
};

inline double nanoseconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

template <typename Call>
double batch_ns_per_call(uint64_t calls, Call& call) {
  const double begin = nanoseconds_now();
  for (uint64_t i = 0; i < calls; ++i) call();
  return (nanoseconds_now() - begin) / static_cast<double>(calls);
}

struct Cost {
  double hooked_ns = std::numeric_limits<double>::max();
  double bare_ns = std::numeric_limits<double>::max();
  double added_ns() const { return hooked_ns - bare_ns; }
};

template <typename Hooked, typename Bare>
Cost compare(const Effort& effort, Hooked hooked, Bare bare) {
  Cost cost;
  for (uint64_t i = 0; i < effort.batches; ++i) {
    cost.hooked_ns = std::min(cost.hooked_ns, batch_ns_per_call(effort.calls, hooked));
    cost.bare_ns = std::min(cost.bare_ns, batch_ns_per_call(effort.calls, bare));
  }
  return cost;
}

}  // namespace bench
