// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory that graphs allocate (cuGraphAddMemAllocNode). The address is fixed when the node is made;
// memory stands behind it from the first launch or upload until cuDeviceGraphMemTrim finds it
// unused. Driver's lock.

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/simgpu/exec/record.h"
#include "tests/simgpu/memory/mapping.h"

namespace simgpu {

struct GraphAllocation {
  uintptr_t address = 0;
  size_t bytes = 0;  // as asked for
  size_t span = 0;
  int device = 0;
  CUmemAccess_flags access[kMaxDevices] = {};
  Mapping* mapping = nullptr;   // null: no memory behind it now
  bool freed_in_owner = false;  // its own graph has a free node for it
  bool freed_elsewhere = false;
  // Allocated by a launch that is submitted, and no free is submitted yet.
  bool outstanding = false;
  RecordRef last_use;  // the end of the last launch that named it
};

namespace graph_memory {

// Takes addresses. Null: there are none.
std::shared_ptr<GraphAllocation> create(int device, size_t bytes,
                                        const std::vector<CUmemAccessDesc>& access);
// The allocation whose address this is, or null.
std::shared_ptr<GraphAllocation> find(uintptr_t address);
// Whether one allocation has all these bytes, with memory behind it or not yet.
bool holds(uintptr_t address, size_t bytes);
// Puts memory behind it, unless it has some. OUT_OF_MEMORY: there is none.
CUresult back(GraphAllocation& allocation);
void set_outstanding(GraphAllocation& allocation, bool outstanding);
// Takes memory from all that nothing uses.
void trim(int device);

struct Totals {
  uint64_t used = 0;
  uint64_t used_high = 0;
  uint64_t reserved = 0;
  uint64_t reserved_high = 0;
};
Totals& totals(int device);

}  // namespace graph_memory
}  // namespace simgpu
