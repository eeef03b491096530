// SPDX-License-Identifier: Apache-2.0
#pragma once
// The physical memories of the simulated machine: one per device, and the host's.

#include "tests/simgpu/memory/physical.h"

namespace simgpu {

PhysicalMemory& device_memory(int device);
// What the driver allocates for pinned host memory and VMM handles on the host; as large as the
// machine's memory.
PhysicalMemory& host_memory();

uint64_t new_buffer_id();

}  // namespace simgpu
