// SPDX-License-Identifier: Apache-2.0
#pragma once
// How much host memory this process may still take: the machine's MemAvailable, and in a container
// what its cgroup leaves, which /proc/meminfo does not tell. Reads files, allocates nothing; some
// tens of microseconds.

#include <cstdint>

namespace offload {

struct HostMemory {
  static constexpr std::uint64_t kUnknown = UINT64_MAX;
  std::uint64_t total_bytes = kUnknown;
  std::uint64_t available_bytes = kUnknown;  // MemAvailable
  // The least that any cgroup above this process leaves: its limit less its usage, page cache that
  // can be dropped not counted as usage. kUnknown: no limit.
  std::uint64_t cgroup_headroom_bytes = kUnknown;
  std::uint64_t cgroup_limit_bytes = kUnknown;  // the smallest limit

  // The smaller of the two; 0 if neither is known.
  std::uint64_t headroom_bytes() const {
    std::uint64_t least =
        available_bytes < cgroup_headroom_bytes ? available_bytes : cgroup_headroom_bytes;
    return least == kUnknown ? 0 : least;
  }
};

// `root` stands before /proc and /sys, for tests.
HostMemory read_host_memory(const char* root = "");

}  // namespace offload
