// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the run did, for SIMGPU_REPORT. Driver's lock.

#include <cstdint>

namespace simgpu {

struct Statistics {
#define SIMGPU_STATISTIC(name) uint64_t name = 0;
#include "tests/simgpu/driver/statistics.def"
#undef SIMGPU_STATISTIC
};

Statistics& statistics();

}  // namespace simgpu
