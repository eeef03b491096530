// SPDX-License-Identifier: Apache-2.0
#pragma once
// Virtual memory management with its documented rules (cuda.h, "Virtual Memory Management"):
// granularity multiples, offset zero, whole mappings only, no access until it is set, memory freed
// with the last mapping and the last reference. Handles are pointers to live PhysicalHandles.
// Driver's lock.

#include <cuda.h>

#include "tests/simgpu/memory/mapping.h"

namespace simgpu::vmm {

size_t granularity();

CUresult reserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr hint);
CUresult free_reservation(CUdeviceptr address, size_t bytes);
// True if the whole range lies in one reservation.
bool is_reserved(uintptr_t address, size_t bytes);

CUresult create(CUmemGenericAllocationHandle* handle, size_t bytes,
                const CUmemAllocationProp& wanted);
// Null if it is not a live handle.
PhysicalHandle* find(CUmemGenericAllocationHandle handle);
CUresult release(CUmemGenericAllocationHandle handle);
CUresult retain(CUmemGenericAllocationHandle* handle, uintptr_t address);

// A file descriptor that stands for the memory (POSIX only, and only if it was created for that),
// in this process or another.
CUresult export_to(int* fd, CUmemGenericAllocationHandle handle);
CUresult import_from(CUmemGenericAllocationHandle* handle, int fd);

CUresult map(uintptr_t address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle);
CUresult unmap(uintptr_t address, size_t bytes);
CUresult set_access(uintptr_t address, size_t bytes, const CUmemAccessDesc* descriptors,
                    size_t count);
CUresult get_access(unsigned long long* flags, const CUmemLocation& location, uintptr_t address);

// Makes the view (and, for host memory with host access, the program's address) show what access
// allows. False: the system refuses more mappings.
bool show(Mapping& mapping);
void hide(Mapping& mapping);

}  // namespace simgpu::vmm
