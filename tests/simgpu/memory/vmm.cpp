// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/memory/vmm.h"

#include <algorithm>
#include <map>

#include "tests/simgpu/check/checker.h"
#include "tests/simgpu/driver/handle_pool.h"
#include "tests/simgpu/memory/address_space.h"
#include "tests/simgpu/memory/exported.h"
#include "tests/simgpu/memory/machine.h"
#include "tests/simgpu/memory/window.h"

namespace simgpu::vmm {

namespace {

std::map<uintptr_t, size_t>& reservations() {
  static auto* instance = new std::map<uintptr_t, size_t>;
  return *instance;
}

HandlePool<PhysicalHandle>& handles() {
  static auto* instance = new HandlePool<PhysicalHandle>;
  return *instance;
}

bool is_multiple(uint64_t value) {
  return value % granularity() == 0;
}

bool is_host(CUmemLocationType type) {
  return type == CU_MEM_LOCATION_TYPE_HOST || type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

void free_if_unused(PhysicalHandle* handle) {
  if (handle->references > 0 || handle->mappings > 0) return;
  handle->physical->free(handle->offset, handle->bytes);
  handles().destroy(handle);
}

// The mappings that fill [address, address + bytes) exactly; empty if they do not.
std::vector<Mapping*> whole_mappings(uintptr_t address, size_t bytes) {
  std::vector<Mapping*> found;
  const uintptr_t end = address + bytes;
  for (uintptr_t at = address; at < end;) {
    Mapping* mapping = address_space().find(at);
    if (mapping == nullptr || mapping->begin != at || mapping->kind != MemoryKind::kVmm ||
        mapping->end() > end) {
      return {};
    }
    found.push_back(mapping);
    at = mapping->end();
  }
  return found;
}

}  // namespace

size_t granularity() {
  return options().granularity;
}

CUresult reserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr hint) {
  if (bytes == 0 || !is_multiple(bytes) || (alignment & (alignment - 1)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  uint64_t begin = RangeAllocator::kNone;
  // Always on 2 MiB, as a real driver's are, whatever the granularity.
  const size_t unit = std::max({alignment, granularity(), size_t{2} << 20});
  if (hint != 0 && hint % unit == 0 && address_space().take_addresses_at(hint, bytes)) begin = hint;
  if (begin == RangeAllocator::kNone) begin = address_space().take_addresses(bytes, unit);
  if (begin == RangeAllocator::kNone) return CUDA_ERROR_OUT_OF_MEMORY;
  reservations()[begin] = bytes;
  *address = begin;
  return CUDA_SUCCESS;
}

CUresult free_reservation(CUdeviceptr address, size_t bytes) {
  const auto it = reservations().find(address);
  if (it == reservations().end() || it->second != bytes) return CUDA_ERROR_INVALID_VALUE;
  if (address_space().overlaps(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  reservations().erase(it);
  address_space().give_addresses(address, bytes);
  return CUDA_SUCCESS;
}

bool is_reserved(uintptr_t address, size_t bytes) {
  auto it = reservations().upper_bound(address);
  if (it == reservations().begin()) return false;
  --it;
  return address - it->first + bytes <= it->second && address - it->first < it->second;
}

CUresult create(CUmemGenericAllocationHandle* handle, size_t bytes,
                const CUmemAllocationProp& wanted) {
  const CUmemLocation& location = wanted.location;
  if (bytes == 0 || !is_multiple(bytes) || wanted.type != CU_MEM_ALLOCATION_TYPE_PINNED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  PhysicalMemory* physical = nullptr;
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    if (location.id < 0 || location.id >= options().devices) return CUDA_ERROR_INVALID_DEVICE;
    physical = &device_memory(location.id);
  } else if (is_host(location.type)) {
    if (!options().host_vmm) return CUDA_ERROR_NOT_SUPPORTED;
    // One NUMA node, number 0; memory on the plain host location cannot be exported.
    if (location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ? location.id != 0
                                                        : wanted.requestedHandleTypes != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    physical = &host_memory();
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const uint64_t offset = physical->allocate(bytes);
  if (offset == PhysicalMemory::kNone) return CUDA_ERROR_OUT_OF_MEMORY;
  PhysicalHandle* created = handles().create();
  created->physical = physical;
  created->offset = offset;
  created->bytes = bytes;
  created->properties = wanted;
  created->block_id = new_buffer_id();
  created->references = 1;
  checker().forget(physical->id(), offset, bytes, Content::kUnwritten);
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(created);
  return CUDA_SUCCESS;
}

PhysicalHandle* find(CUmemGenericAllocationHandle handle) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  PhysicalHandle* found = handles().find(reinterpret_cast<void*>(handle));
  return found != nullptr && found->references > 0 ? found : nullptr;
}

CUresult release(CUmemGenericAllocationHandle handle) {
  PhysicalHandle* found = find(handle);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  --found->references;
  free_if_unused(found);
  return CUDA_SUCCESS;
}

CUresult retain(CUmemGenericAllocationHandle* handle, uintptr_t address) {
  const Mapping* mapping = address_space().find(address);
  if (mapping == nullptr || mapping->handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ++mapping->handle->references;
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(mapping->handle);
  return CUDA_SUCCESS;
}

CUresult export_to(int* fd, CUmemGenericAllocationHandle handle) {
  const PhysicalHandle* memory = find(handle);
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUmemAllocationProp& properties = memory->properties;
  if ((properties.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0 ||
      memory->physical->foreign()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const int device = is_host(properties.location.type) ? -1 : properties.location.id;
  exported::Description made =
      exported::describe(*memory->physical, device, memory->offset, memory->bytes);
  made.types = properties.requestedHandleTypes;
  made.object = reinterpret_cast<uintptr_t>(memory);
  made.block_id = memory->block_id;
  *fd = exported::make_file(made);
  return *fd >= 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult import_from(CUmemGenericAllocationHandle* handle, int fd) {
  exported::Description made;
  if (!exported::read_file(fd, &made)) return CUDA_ERROR_INVALID_VALUE;
  if (exported::is_own(made)) {
    PhysicalHandle* memory = find(made.object);
    if (memory == nullptr || memory->block_id != made.block_id) return CUDA_ERROR_INVALID_VALUE;
    ++memory->references;
    *handle = made.object;
    return CUDA_SUCCESS;
  }
  PhysicalMemory* physical = exported::open_memory(made);
  if (physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
  PhysicalHandle* created = handles().create();
  created->physical = physical;
  created->offset = made.offset;
  created->bytes = made.bytes;
  created->properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  created->properties.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(made.types);
  created->properties.location = {
      made.device < 0 ? CU_MEM_LOCATION_TYPE_HOST_NUMA : CU_MEM_LOCATION_TYPE_DEVICE,
      made.device < 0 ? 0 : made.device};
  created->block_id = new_buffer_id();
  created->references = 1;
  checker().forget(physical->id(), made.offset, made.bytes, Content::kUnknown);
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(created);
  return CUDA_SUCCESS;
}

CUresult map(uintptr_t address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle) {
  PhysicalHandle* memory = find(handle);
  if (memory == nullptr || offset != 0 || bytes == 0 || !is_multiple(address) ||
      !is_multiple(bytes) || bytes > memory->bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!is_reserved(address, bytes) || address_space().overlaps(address, bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Mapping mapping;
  mapping.begin = address;
  mapping.bytes = bytes;
  mapping.span = bytes;
  mapping.device = is_host(memory->properties.location.type) ? -1 : memory->properties.location.id;
  mapping.physical = memory->physical;
  mapping.offset = memory->offset;
  mapping.handle = memory;
  mapping.buffer_id = new_buffer_id();
  mapping.block_id = memory->block_id;
  address_space().insert(std::move(mapping));
  ++memory->mappings;
  return CUDA_SUCCESS;
}

CUresult unmap(uintptr_t address, size_t bytes) {
  const std::vector<Mapping*> found = whole_mappings(address, bytes);
  if (found.empty()) return CUDA_ERROR_INVALID_VALUE;
  for (Mapping* mapping : found) {
    checker().removing(*mapping, "cuMemUnmap");
    hide(*mapping);
    PhysicalHandle* handle = mapping->handle;
    address_space().erase(mapping);
    --handle->mappings;
    free_if_unused(handle);
  }
  return CUDA_SUCCESS;
}

bool show(Mapping& mapping) {
  const uintptr_t view = mapping.begin + static_cast<uintptr_t>(window().delta);
  const int fd = mapping.physical->fd();
  const auto strongest = *std::max_element(std::begin(mapping.access), std::end(mapping.access));
  if (strongest == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
    if (!map_nothing(view, mapping.span)) return false;
  } else if (!map_file(view, mapping.span, fd, mapping.offset,
                       strongest == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)) {
    return false;
  }
  return mapping.host_access == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
         map_file(mapping.begin, mapping.span, fd, mapping.offset,
                  mapping.host_access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

void hide(Mapping& mapping) {
  map_nothing(mapping.begin + static_cast<uintptr_t>(window().delta), mapping.span);
  if (mapping.host_access != CU_MEM_ACCESS_FLAGS_PROT_NONE) {
    map_nothing(mapping.begin, mapping.span);
  }
}

CUresult set_access(uintptr_t address, size_t bytes, const CUmemAccessDesc* descriptors,
                    size_t count) {
  const std::vector<Mapping*> found = whole_mappings(address, bytes);
  if (found.empty()) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const CUmemAccessDesc& wanted = descriptors[i];
    const bool known = wanted.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                       wanted.flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                       wanted.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (!known) return CUDA_ERROR_INVALID_VALUE;
    if (wanted.location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
      if (wanted.location.id < 0 || wanted.location.id >= options().devices) {
        return CUDA_ERROR_INVALID_DEVICE;
      }
    } else if (!is_host(wanted.location.type) ||
               std::any_of(found.begin(), found.end(),
                           [](const Mapping* mapping) { return mapping->device >= 0; })) {
      // The host can be let in only to memory that is on the host.
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  for (Mapping* mapping : found) {
    for (size_t i = 0; i < count; ++i) {
      const CUmemAccessDesc& wanted = descriptors[i];
      if (wanted.location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
        mapping->access[wanted.location.id] = wanted.flags;
      } else {
        if (mapping->host_access != CU_MEM_ACCESS_FLAGS_PROT_NONE) {
          map_nothing(mapping->begin, mapping->span);
        }
        mapping->host_access = wanted.flags;
        checker().host_may_write(mapping->space(), mapping->offset, mapping->span);
      }
    }
    if (show(*mapping)) continue;
    hide(*mapping);  // as nothing can be shown there, nobody has access
    std::fill(std::begin(mapping->access), std::end(mapping->access),
              CU_MEM_ACCESS_FLAGS_PROT_NONE);
    mapping->host_access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

CUresult get_access(unsigned long long* flags, const CUmemLocation& location, uintptr_t address) {
  const Mapping* mapping = address_space().find(address);
  if (mapping == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    if (location.id < 0 || location.id >= options().devices) return CUDA_ERROR_INVALID_DEVICE;
    *flags = mapping->access[location.id];
  } else if (is_host(location.type)) {
    *flags = mapping->host_access;
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace simgpu::vmm
