// SPDX-License-Identifier: Apache-2.0
#pragma once
// The cost table of clock virtual. Driver's lock.

#include <cstddef>
#include <cstdint>

namespace simgpu {

struct CallCost {
  int64_t ns;
  bool keeps_driver;  // all that time it holds the lock that every call needs
};

// Of the call itself; `api` must stay where it is (a literal).
const CallCost& call_cost(const char* api);

// What a call costs on top, by size. VMM calls grow with the pages that they change (kvcached: a
// map and access of 64 MiB takes ten times that of 2 MiB), times SIMGPU_SLOW_MAPS.
int64_t mapping_cost_ns(size_t bytes);
// Pinning takes the pages one by one, at about 5 GB/s.
int64_t pinning_cost_ns(size_t bytes);
// Copying pageable memory to where a link can fetch it, at 10 GB/s.
int64_t staging_cost_ns(size_t bytes);
// The first launch of a module that was loaded lazily.
inline constexpr int64_t kFirstLaunchNs = 300000;

}  // namespace simgpu
