// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/graph_memory.h"

#include <algorithm>
#include <list>

#include "tests/simgpu/check/checker.h"
#include "tests/simgpu/memory/address_space.h"
#include "tests/simgpu/memory/heap.h"
#include "tests/simgpu/memory/machine.h"
#include "tests/simgpu/memory/window.h"

namespace simgpu::graph_memory {

namespace {

// All that ever were and still have an address; the list itself is one of the owners.
std::list<std::shared_ptr<GraphAllocation>>& all() {
  static auto* list = new std::list<std::shared_ptr<GraphAllocation>>;
  return *list;
}

bool unused(const GraphAllocation& allocation) {
  return !allocation.outstanding && (allocation.mapping == nullptr || !allocation.mapping->live) &&
         (allocation.last_use == nullptr || allocation.last_use->done);
}

void take_memory(GraphAllocation& allocation) {
  if (allocation.mapping == nullptr) return;
  PhysicalMemory& physical = device_memory(allocation.device);
  map_nothing(allocation.address + static_cast<uintptr_t>(window().delta), allocation.span);
  physical.free(allocation.mapping->offset, allocation.span);
  address_space().erase(allocation.mapping);
  allocation.mapping = nullptr;
  totals(allocation.device).reserved -= allocation.span;
}

}  // namespace

Totals& totals(int device) {
  static auto* each = new Totals[kMaxDevices];
  return each[device];
}

std::shared_ptr<GraphAllocation> create(int device, size_t bytes,
                                        const std::vector<CUmemAccessDesc>& access) {
  const size_t unit = heap::block_bytes();
  auto made = std::make_shared<GraphAllocation>();
  made->bytes = bytes;
  made->span = (bytes + unit - 1) / unit * unit;
  made->device = device;
  made->access[device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  for (const CUmemAccessDesc& desc : access) made->access[desc.location.id] = desc.flags;
  const uint64_t begin = address_space().take_addresses(made->span, size_t{2} << 20);
  if (begin == RangeAllocator::kNone) return nullptr;
  made->address = begin;
  all().push_back(made);
  return made;
}

std::shared_ptr<GraphAllocation> find(uintptr_t address) {
  for (const auto& allocation : all()) {
    if (allocation->address == address) return allocation;
  }
  return nullptr;
}

bool holds(uintptr_t address, size_t bytes) {
  return std::any_of(all().begin(), all().end(), [&](const auto& allocation) {
    return address >= allocation->address && bytes <= allocation->bytes &&
           address - allocation->address <= allocation->bytes - bytes;
  });
}

CUresult back(GraphAllocation& allocation) {
  if (allocation.mapping != nullptr) return CUDA_SUCCESS;
  PhysicalMemory& physical = device_memory(allocation.device);
  const uint64_t offset = physical.allocate(allocation.span);
  if (offset == PhysicalMemory::kNone) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!map_file(allocation.address + static_cast<uintptr_t>(window().delta), allocation.span,
                physical.fd(), offset, true)) {
    physical.free(offset, allocation.span);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Mapping mapping;
  mapping.begin = allocation.address;
  mapping.bytes = allocation.bytes;
  mapping.span = allocation.span;
  mapping.kind = MemoryKind::kGraph;
  mapping.device = allocation.device;
  mapping.physical = &physical;
  mapping.offset = offset;
  mapping.live = false;
  mapping.buffer_id = new_buffer_id();
  mapping.block_id = mapping.buffer_id;
  std::copy(std::begin(allocation.access), std::end(allocation.access), std::begin(mapping.access));
  checker().forget(mapping.space(), offset, allocation.span, Content::kUnwritten);
  allocation.mapping = address_space().insert(std::move(mapping));
  Totals& sums = totals(allocation.device);
  sums.reserved += allocation.span;
  sums.reserved_high = std::max(sums.reserved_high, sums.reserved);
  return CUDA_SUCCESS;
}

void set_outstanding(GraphAllocation& allocation, bool outstanding) {
  if (allocation.outstanding == outstanding) return;
  allocation.outstanding = outstanding;
  Totals& sums = totals(allocation.device);
  sums.used = outstanding ? sums.used + allocation.span : sums.used - allocation.span;
  sums.used_high = std::max(sums.used_high, sums.used);
}

void trim(int device) {
  for (auto it = all().begin(); it != all().end();) {
    GraphAllocation& allocation = **it;
    if (allocation.device != device || !unused(allocation)) {
      ++it;
      continue;
    }
    take_memory(allocation);
    const bool forgotten = it->use_count() == 1;  // no node names it any more
    if (forgotten) address_space().give_addresses(allocation.address, allocation.span);
    it = forgotten ? all().erase(it) : std::next(it);
  }
}

}  // namespace simgpu::graph_memory
