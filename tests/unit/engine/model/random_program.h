// SPDX-License-Identifier: Apache-2.0
#pragma once
// Programs by chance: sizes, streams, frees of both kinds, users that the engine cannot see, flags
// that the host sets, calls that fail, several host threads. A seed says everything, so that a
// failure can be replayed.

#include <cstdint>
#include <ostream>
#include <string>

namespace offload::model {

enum class Flavour : uint8_t {
  kPlain,     // one host thread
  kHidden,    // ops that do not name what they touch, within grace
  kFlags,     // waits on flags that the host sets later
  kFailures,  // calls of the driver fail by chance
  kThreads,   // several host threads and a worker, one at a time
  kThreadsFailures,
  kCount
};

const char* name_of(Flavour flavour);
inline void PrintTo(Flavour flavour, std::ostream* out) {
  *out << name_of(flavour);
}

struct RandomResult {
  bool held = true;
  std::string what;  // the failure and how to replay it
  uint64_t ops = 0;
  uint64_t refused = 0;
  uint64_t bytes_out = 0;
  uint64_t bytes_in = 0;
  uint64_t cancelled = 0;
  uint64_t parked_hits = 0;
  uint64_t failed_calls = 0;
  uint64_t host_waits = 0;
};

RandomResult run_random(uint64_t seed, Flavour flavour, uint32_t steps);

}  // namespace offload::model
