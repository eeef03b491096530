// SPDX-License-Identifier: Apache-2.0
#pragma once
// What liboffload needs to know of a device before it manages its memory. Queries only.

#include <cstdint>

#include "interpose/driver/cuda_api.h"

namespace offload {

struct Device {
  CUdevice device = 0;
  CUcontext context = nullptr;  // the primary one
  char name[128] = {};
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;              // when asked
  uint64_t granularity = 0;             // fits both device memory and, if there is any, host memory
  bool virtual_memory = false;          // VMM
  bool host_memory = false;             // VMM with memory of the host
  CUmemLocation host{};                 // where that is
  CUmemoryPool default_pool = nullptr;  // null: the driver has none
  bool layouts = false;                 // the driver tells parameter layouts (12.4)
  int driver_version = 0;
};

// The device of the current context, if that is a primary one. False: it is not, there is none, or
// a query failed.
bool query_current_device(Device* device);

// The device's primary context, if it is active; else null.
CUcontext primary_context(CUdevice device);

// Properties of a physical allocation of ours: no handle types, no RDMA, so that what we cannot see
// fails instead of reading moved pages.
CUmemAllocationProp device_memory(const Device& device);
CUmemAllocationProp host_memory(const Device& device);

}  // namespace offload
