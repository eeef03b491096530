// SPDX-License-Identifier: Apache-2.0
#pragma once
// One range of addresses behind which there is memory: a mapping of a VMM handle, an allocation, a
// piece of a pool, or host memory that the device knows. Driver's lock.

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/simgpu/check/access_map.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/memory/physical.h"

namespace simgpu {

struct Context;
struct Pool;

// A VMM handle's memory (cuMemCreate). Freed with the last reference and the last mapping.
struct PhysicalHandle {
  PhysicalMemory* physical = nullptr;
  uint64_t offset = 0;
  size_t bytes = 0;
  CUmemAllocationProp properties = {};
  uint64_t block_id = 0;
  int references = 0;
  int mappings = 0;
};

enum class MemoryKind : uint8_t {
  kVmm,
  kHeap,
  kPool,
  kPinned,
  kRegistered,
  kGraph,
  kManaged,
  kIpc
};

struct Mapping {
  uintptr_t begin = 0;
  size_t bytes = 0;  // as asked for, what copies are checked against
  size_t span = 0;   // what a kernel can touch
  MemoryKind kind = MemoryKind::kVmm;
  int device = -1;  // where the memory is; -1: host
  PhysicalMemory* physical =
      nullptr;  // null: registered host memory, whose "offset" is its address
  uint64_t offset = 0;
  CUmemAccess_flags access[kMaxDevices] = {};
  CUmemAccess_flags host_access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  PhysicalHandle* handle = nullptr;
  Pool* pool = nullptr;
  bool populated = false;  // its pages have been looked up for the view
  bool live = true;        // a pool's piece: between its allocation and its free in stream order
  Context* context = nullptr;
  unsigned host_flags = 0;
  bool sync_memops = false;
  uint64_t buffer_id = 0;
  uint64_t block_id = 0;
  // The last operation of each stream that used this mapping, for the checker.
  std::vector<Use> uses;

  uintptr_t end() const { return begin + span; }
  // Where the driver itself sees the byte at `address`.
  std::byte* data(uintptr_t address) const {
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return physical ? physical->at(offset + (address - begin))
                    : reinterpret_cast<std::byte*>(address);
  }
  // Names the bytes for the checker: a space and an offset in it.
  int space() const { return physical ? physical->id() : -1; }
  uint64_t offset_of(uintptr_t address) const {
    return physical ? offset + (address - begin) : address;
  }
};

}  // namespace simgpu
