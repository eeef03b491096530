// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/memory/host_blocks.h"

#include <sys/mman.h>

#include <algorithm>

#include "tests/simgpu/check/checker.h"
#include "tests/simgpu/memory/address_space.h"
#include "tests/simgpu/memory/machine.h"

namespace simgpu::host_blocks {

namespace {

constexpr size_t kPage = 4096;

void let_devices_in(Mapping& mapping) {
  for (int device = 0; device < options().devices; ++device) {
    mapping.access[device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  mapping.host_access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

size_t& registered_bytes() {
  static size_t bytes = 0;
  return bytes;
}

bool is_pinnable(size_t bytes) {
  const size_t limit = options().pin_limit;
  return limit == 0 || host_memory().used() + registered_bytes() + bytes <= limit;
}

Mapping* find_at(void* pointer, MemoryKind kind) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  Mapping* mapping = address_space().find(address);
  return mapping && mapping->begin == address && mapping->kind == kind ? mapping : nullptr;
}

}  // namespace

CUresult allocate(void** pointer, size_t bytes, unsigned flags, Context* context) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t span = (bytes + kPage - 1) / kPage * kPage;
  if (!is_pinnable(span)) return CUDA_ERROR_OUT_OF_MEMORY;
  PhysicalMemory& physical = host_memory();
  const uint64_t offset = physical.allocate(span);
  if (offset == PhysicalMemory::kNone) return CUDA_ERROR_OUT_OF_MEMORY;
  void* memory = mmap(nullptr, span, PROT_READ | PROT_WRITE, MAP_SHARED, physical.fd(),
                      static_cast<off_t>(offset));
  if (memory == MAP_FAILED) {
    physical.free(offset, span);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Mapping mapping;
  mapping.begin = reinterpret_cast<uintptr_t>(memory);
  mapping.bytes = bytes;
  mapping.span = span;
  mapping.kind = MemoryKind::kPinned;
  mapping.physical = &physical;
  mapping.offset = offset;
  mapping.context = context;
  mapping.host_flags = flags;
  mapping.buffer_id = new_buffer_id();
  mapping.block_id = mapping.buffer_id;
  let_devices_in(mapping);
  checker().forget(mapping.space(), offset, span, Content::kUnknown);
  address_space().insert(std::move(mapping));
  *pointer = memory;
  return CUDA_SUCCESS;
}

void free_any(Mapping* mapping) {
  if (mapping->kind != MemoryKind::kRegistered) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    munmap(reinterpret_cast<void*>(mapping->begin), mapping->span);
    mapping->physical->free(mapping->offset, mapping->span);
  }
  if (mapping->kind == MemoryKind::kRegistered) registered_bytes() -= mapping->bytes;
  address_space().erase(mapping);
}

CUresult free(void* pointer) {
  Mapping* mapping = find_at(pointer, MemoryKind::kPinned);
  if (mapping == nullptr) return CUDA_ERROR_INVALID_VALUE;
  free_any(mapping);
  return CUDA_SUCCESS;
}

CUresult add_registered(void* pointer, size_t bytes, unsigned flags, Context* context) {
  const auto begin = reinterpret_cast<uintptr_t>(pointer);
  if (pointer == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (address_space().overlaps(begin, bytes)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  if (!is_pinnable(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  registered_bytes() += bytes;
  Mapping mapping;
  mapping.begin = begin;
  mapping.bytes = bytes;
  mapping.span = bytes;
  mapping.kind = MemoryKind::kRegistered;
  mapping.context = context;
  mapping.host_flags = flags;
  mapping.buffer_id = new_buffer_id();
  mapping.block_id = mapping.buffer_id;
  let_devices_in(mapping);
  checker().forget(mapping.space(), begin, bytes, Content::kUnknown);
  address_space().insert(std::move(mapping));
  return CUDA_SUCCESS;
}

CUresult remove_registered(void* pointer) {
  Mapping* mapping = find_at(pointer, MemoryKind::kRegistered);
  if (mapping == nullptr) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  checker().removing(*mapping, "cuMemHostUnregister");
  free_any(mapping);
  return CUDA_SUCCESS;
}

}  // namespace simgpu::host_blocks
