// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/memory/machine.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "tests/simgpu/driver/options.h"

namespace simgpu {

PhysicalMemory& device_memory(int device) {
  static PhysicalMemory* memories[kMaxDevices] = {};
  if (memories[device] == nullptr) {
    const std::string name = "simgpu-device-" + std::to_string(device);
    memories[device] =
        new PhysicalMemory(device, name.c_str(), options().memory_bytes, options().granularity);
  }
  return *memories[device];
}

PhysicalMemory& host_memory() {
  static auto* memory = [] {
    const auto pages = static_cast<size_t>(sysconf(_SC_PHYS_PAGES));
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t limit = options().pin_limit / page * page;
    const size_t capacity = limit != 0 ? std::min(limit, pages * page) : pages * page;
    return new PhysicalMemory(kMaxDevices, "simgpu-host", capacity, page);
  }();
  return *memory;
}

uint64_t new_buffer_id() {
  static uint64_t last = 0;
  return ++last;
}

}  // namespace simgpu
