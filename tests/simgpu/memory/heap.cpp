// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/memory/heap.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>

#include "tests/simgpu/check/checker.h"
#include "tests/simgpu/driver/context.h"
#include "tests/simgpu/memory/address_space.h"
#include "tests/simgpu/memory/machine.h"
#include "tests/simgpu/memory/window.h"

namespace simgpu::heap {

namespace {

struct SharedBlock {
  Block block;
  RangeAllocator free;
  size_t used = 0;
};

// Blocks that small allocations share, by address.
std::map<uintptr_t, std::unique_ptr<SharedBlock>>& shared_blocks(int device) {
  static auto* blocks = new std::map<uintptr_t, std::unique_ptr<SharedBlock>>[kMaxDevices];
  return blocks[device];
}

size_t round_up(size_t value, size_t unit) {
  return (value + unit - 1) / unit * unit;
}

// The place of a small allocation: an address inside a shared block, or 0.
uintptr_t take_shared(int device, size_t bytes, SharedBlock** owner) {
  auto& blocks = shared_blocks(device);
  for (auto& [begin, shared] : blocks) {
    const uint64_t address = shared->free.allocate(bytes, kAlignment);
    if (address == RangeAllocator::kNone) continue;
    shared->used += bytes;
    *owner = shared.get();
    return address;
  }
  const Block block = take_block(device, block_bytes());
  if (block.begin == 0) return 0;
  auto shared = std::make_unique<SharedBlock>(
      SharedBlock{block, RangeAllocator(block.begin, block.begin + block.bytes), 0});
  const uint64_t address = shared->free.allocate(bytes, kAlignment);
  shared->used = bytes;
  *owner = shared.get();
  blocks[block.begin] = std::move(shared);
  return address;
}

}  // namespace

size_t block_bytes() {
  return std::max(options().granularity, std::min(options().granularity * 16, size_t{2} << 20));
}

namespace {

constexpr size_t kKeptBytes = size_t{1} << 30;

struct Kept {
  std::deque<Block> blocks;  // oldest first
  size_t bytes = 0;
};

Kept& kept(int device) {
  static auto* all = new Kept[kMaxDevices];
  return all[device];
}

Block take_kept(int device, size_t bytes) {
  Kept& store = kept(device);
  for (size_t i = store.blocks.size(); i-- > 0;) {
    if (store.blocks[i].bytes != bytes) continue;
    if (!device_memory(device).take_back(bytes)) return {};
    const Block block = store.blocks[i];
    store.blocks.erase(store.blocks.begin() + static_cast<ptrdiff_t>(i));
    store.bytes -= bytes;
    return block;
  }
  return {};
}

}  // namespace

Block take_block(int device, size_t bytes) {
  if (const Block block = take_kept(device, bytes); block.begin != 0) return block;
  PhysicalMemory& physical = device_memory(device);
  const uint64_t offset = physical.allocate(bytes);
  if (offset == PhysicalMemory::kNone) return {};
  const uint64_t begin = address_space().take_addresses(bytes, size_t{2} << 20);
  if (begin == RangeAllocator::kNone || !map_file(begin + static_cast<uintptr_t>(window().delta),
                                                  bytes, physical.fd(), offset, true)) {
    if (begin != RangeAllocator::kNone) address_space().give_addresses(begin, bytes);
    physical.free(offset, bytes);
    return {};
  }
  return {begin, bytes, offset, false};
}

void give_block(int device, const Block& block) {
  Kept& store = kept(device);
  PhysicalMemory& physical = device_memory(device);
  physical.set_aside(block.bytes);
  store.blocks.push_back(block);
  store.bytes += block.bytes;
  while (store.bytes > kKeptBytes) {
    const Block oldest = store.blocks.front();
    store.blocks.pop_front();
    store.bytes -= oldest.bytes;
    map_nothing(oldest.begin + static_cast<uintptr_t>(window().delta), oldest.bytes);
    address_space().give_addresses(oldest.begin, oldest.bytes);
    physical.free_aside(oldest.offset, oldest.bytes);
  }
}

CUresult allocate(CUdeviceptr* address, size_t bytes, Context* context, int device) {
  const size_t unit = block_bytes();
  if (bytes > options().memory_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  Mapping mapping;
  mapping.bytes = bytes;
  mapping.span = round_up(bytes, kAlignment);
  if (mapping.span > unit / 2) {
    const Block block = take_block(device, round_up(bytes, unit));
    if (block.begin == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    mapping.begin = block.begin;
    mapping.span = block.bytes;
    mapping.offset = block.offset;
    mapping.populated = block.populated;
  } else {
    SharedBlock* owner = nullptr;
    mapping.begin = take_shared(device, mapping.span, &owner);
    if (mapping.begin == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    mapping.offset = owner->block.offset + (mapping.begin - owner->block.begin);
  }
  mapping.kind = MemoryKind::kHeap;
  mapping.device = device;
  mapping.physical = &device_memory(device);
  mapping.access[device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  mapping.context = context;
  mapping.buffer_id = new_buffer_id();
  mapping.block_id = mapping.buffer_id;
  checker().forget(mapping.space(), mapping.offset, mapping.span, Content::kUnwritten);
  *address = mapping.begin;
  address_space().insert(std::move(mapping));
  return CUDA_SUCCESS;
}

void free(Mapping* mapping) {
  const int device = mapping->device;
  const uintptr_t begin = mapping->begin;
  const size_t span = mapping->span;
  const uint64_t offset = mapping->offset;
  const bool populated = mapping->populated;
  address_space().erase(mapping);
  auto& blocks = shared_blocks(device);
  auto it = blocks.upper_bound(begin);
  if (it != blocks.begin()) {
    --it;
    SharedBlock& shared = *it->second;
    if (begin - it->first < shared.block.bytes) {
      shared.free.release(begin, span);
      shared.used -= span;
      if (shared.used == 0) {
        give_block(device, shared.block);
        blocks.erase(it);
      }
      return;
    }
  }
  give_block(device, {begin, span, offset, populated});
}

}  // namespace simgpu::heap
