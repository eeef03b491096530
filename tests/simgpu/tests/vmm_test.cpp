// SPDX-License-Identifier: Apache-2.0
// The documented rules of virtual memory management.
#include <fstream>
#include <vector>

#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {
namespace {

constexpr size_t kGranule = 2 << 20;

// CUDA Driver API reference, "Virtual Memory Management", cuMemCreate, cuMemAddressReserve,
// cuMemMap: multiples of the granularity, offset zero, flags zero, and "on VA range reservations
// that are not currently mapped" alone.
TEST(Vmm, GranularityAndMultiples) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUmemAllocationProp properties = device_properties();
    size_t granularity = 0;
    CU(cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    EXPECT_EQ(granularity, kGranule);
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(cuMemCreate(&handle, kGranule / 2, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemCreate(&handle, 0, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAddressReserve(&address, kGranule + 4096, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAddressReserve(&address, kGranule, 3 << 20, 0, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemAddressReserve(&address, 4 * kGranule, 0, 0, 0));
    EXPECT_EQ(address % kGranule, 0U);
    CU(cuMemCreate(&handle, kGranule, &properties, 0));
    EXPECT_EQ(cuMemMap(address + 4096, kGranule, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemMap(address, kGranule, kGranule, handle, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemMap(address, 2 * kGranule, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemMap(address, kGranule, 0, handle, 1), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemMap(address, kGranule, 0, handle, 0));
    EXPECT_EQ(cuMemMap(address, kGranule, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);  // taken
  }));
}

// Smaller granules than any real device's, for tests: the same rules.
TEST(Vmm, SmallGranules) {
  EXPECT_CLEAN(in_child({{"SIMGPU_GRANULARITY", "4KiB"}}, [] {
    Gpu gpu;
    const Extent extent = new_extent(4096);
    CU(gpu.launch_store(extent.address, 1024, 9, nullptr));
    EXPECT_EQ(gpu.read(extent.address, 1024)[1023], 9U);
  }));
}

// CUDA Driver API reference, "Virtual Memory Management", cuMemMap: "calling cuMemMap does not
// make the address accessible".
TEST(Vmm, NoAccessUntilItIsSet) {
  const Outcome outcome = in_child({}, [] {
    Gpu gpu;
    Extent extent = new_extent(kGranule);
    CU(gpu.launch_store(extent.address, 4, 1, nullptr));
    CU(cuCtxSynchronize());
    CU(cuMemUnmap(extent.address, kGranule));
    CU(cuMemMap(extent.address, kGranule, 0, extent.handle, 0));
    unsigned long long flags = 9;
    const CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CU(cuMemGetAccess(&flags, &location, extent.address));
    EXPECT_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);  // of the new mapping
    CU(gpu.launch_store(extent.address, 4, 1, nullptr));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  });
  EXPECT_TRUE(outcome.says("to which it has no access")) << outcome.errors;
}

// CUDA Driver API reference, "Virtual Memory Management", CUmemAccess_flags,
// CU_MEM_ACCESS_FLAGS_PROT_READ.
TEST(Vmm, ReadOnlyAccess) {
  const Outcome outcome = in_child({}, [] {
    Gpu gpu;
    const Extent extent = new_extent(kGranule);
    const CUdeviceptr other = allocate(4096);
    CU(gpu.launch_store(extent.address, 4, 6, nullptr));
    CU(cuCtxSynchronize());
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                    CU_MEM_ACCESS_FLAGS_PROT_READ};
    CU(cuMemSetAccess(extent.address, kGranule, &access, 1));
    CU(gpu.launch_copy(other, extent.address, 4, nullptr));
    EXPECT_EQ(gpu.read(other, 4)[3], 6U);
    CU(gpu.launch_store(extent.address, 4, 1, nullptr));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  });
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

// CUDA Driver API reference, "Virtual Memory Management", cuMemUnmap: the address becomes a
// reservation again, memory with a handle lives on.
TEST(Vmm, ContentSurvivesUnmapping) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const Extent extent = new_extent(kGranule);
    CU(gpu.launch_store(extent.address, 1000, 77, nullptr));
    CU(cuCtxSynchronize());
    CU(cuMemUnmap(extent.address, kGranule));
    const CUdeviceptr elsewhere = map_again(extent);
    EXPECT_NE(elsewhere, extent.address);
    EXPECT_EQ(gpu.read(elsewhere, 1000)[999], 77U);
  }));
}

// CUDA Driver API reference, "Virtual Memory Management", cuMemUnmap: "cannot unmap a sub-range
// of an address range mapped"; cuMemSetAccess: "a fully mapped address range"; cuMemAddressFree:
// size and address as they were reserved.
TEST(Vmm, WholeMappingsOnly) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUmemAllocationProp properties = device_properties();
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr address = 0;
    CU(cuMemAddressReserve(&address, 8 * kGranule, 0, 0, 0));
    CU(cuMemCreate(&handle, 2 * kGranule, &properties, 0));
    CU(cuMemMap(address, 2 * kGranule, 0, handle, 0));
    CU(cuMemMap(address + 2 * kGranule, 2 * kGranule, 0, handle, 0));
    EXPECT_EQ(cuMemUnmap(address, kGranule), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemUnmap(address, 3 * kGranule), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemUnmap(address, 5 * kGranule), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(give_access(address, kGranule), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(give_access(address, 8 * kGranule), CUDA_ERROR_INVALID_VALUE);  // not all mapped
    CU(give_access(address, 4 * kGranule));
    EXPECT_EQ(cuMemAddressFree(address, 8 * kGranule), CUDA_ERROR_INVALID_VALUE);  // still mapped
    CU(cuMemUnmap(address, 4 * kGranule));  // several whole ones
    EXPECT_EQ(cuMemAddressFree(address, 4 * kGranule), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemAddressFree(address, 8 * kGranule));
    EXPECT_EQ(cuMemMap(address, 2 * kGranule, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  }));
}

// CUDA Driver API reference, "Virtual Memory Management", cuMemRelease: freed with the last
// mapping and the last reference to a handle, in whichever order.
TEST(Vmm, MemoryLivesUntilTheLastMappingAndReference) {
  EXPECT_CLEAN(in_child({{"SIMGPU_MEMORY", "64MiB"}}, [] {
    Gpu gpu;
    size_t free_before = 0;
    size_t free_now = 0;
    size_t total = 0;
    CU(cuMemGetInfo(&free_before, &total));
    EXPECT_EQ(total, size_t{64} << 20);
    const Extent extent = new_extent(8 * kGranule);
    CU(cuMemGetInfo(&free_now, nullptr));
    EXPECT_EQ(free_before - free_now, 8 * kGranule);
    CUmemGenericAllocationHandle again = 0;
    CU(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(extent.address + 100)));
    EXPECT_EQ(again, extent.handle);
    CU(cuMemRelease(extent.handle));
    CU(cuMemRelease(again));
    EXPECT_EQ(cuMemRelease(extent.handle), CUDA_ERROR_INVALID_VALUE);  // released twice
    CU(cuMemGetInfo(&free_now, nullptr));
    EXPECT_EQ(free_before - free_now, 8 * kGranule);  // the mapping holds it
    CU(cuMemsetD8(extent.address, 1, 100));
    CU(cuCtxSynchronize());
    CU(cuMemUnmap(extent.address, 8 * kGranule));
    CU(cuMemGetInfo(&free_now, nullptr));
    EXPECT_EQ(free_now, free_before);
  }));
}

// CUDA Programming Guide, "Virtual Memory Management": physical memory need not be contiguous,
// so only its sum counts; CUDA Driver API reference, cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY.
TEST(Vmm, CapacityIsEnforcedAndFragmentationIsNot) {
  EXPECT_CLEAN(in_child({{"SIMGPU_MEMORY", "16MiB"}}, [] {
    Gpu gpu;
    const CUmemAllocationProp properties = device_properties();
    CUmemGenericAllocationHandle handles[8];
    CUmemGenericAllocationHandle big = 0;
    for (auto& handle : handles) {
      CU(cuMemCreate(&handle, kGranule, &properties, 0));
    }
    EXPECT_EQ(cuMemCreate(&big, kGranule, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
    CUdeviceptr p = 0;
    EXPECT_EQ(cuMemAlloc(&p, 1), CUDA_ERROR_OUT_OF_MEMORY);
    for (int i = 0; i < 8; i += 2) {
      CU(cuMemRelease(handles[i]));
    }
    CU(cuMemCreate(&big, 4 * kGranule, &properties, 0));
  }));
}

// Seen on real drivers, said nowhere.
TEST(Vmm, HandlesAndAddressesComeBackLastInFirstOut) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUmemAllocationProp properties = device_properties();
    CUmemGenericAllocationHandle a = 0;
    CUmemGenericAllocationHandle b = 0;
    CU(cuMemCreate(&a, kGranule, &properties, 0));
    CU(cuMemRelease(a));
    CU(cuMemCreate(&b, kGranule, &properties, 0));
    EXPECT_EQ(a, b);
    CUdeviceptr first = 0;
    CUdeviceptr second = 0;
    CU(cuMemAddressReserve(&first, kGranule, 0, 0, 0));
    CU(cuMemAddressFree(first, kGranule));
    CU(cuMemAddressReserve(&second, kGranule, 0, 0, 0));
    EXPECT_EQ(first, second);
  }));
}

// CUDA Driver API reference, "Virtual Memory Management", cuMemCreate: HOST
// ("requestedHandleTypes must be 0"), HOST_NUMA (node 0 where there are none), HOST_NUMA_CURRENT
// ("CUDA_ERROR_INVALID_VALUE").
TEST(Vmm, HostMemory) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    CUmemAllocationProp properties = host_properties();
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr address = 0;
    CU(cuMemAddressReserve(&address, kGranule, 0, 0, 0));
    CU(cuMemCreate(&handle, kGranule, &properties, 0));
    CU(cuMemMap(address, kGranule, 0, handle, 0));
    const CUmemAccessDesc access[2] = {
        {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
        {{CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    CU(cuMemSetAccess(address, kGranule, access, 2));
    auto* words = reinterpret_cast<uint32_t*>(address);  // with host access it is plain memory
    words[3] = 40;
    CU(gpu.launch_add(address, 4, 2, nullptr));
    CU(cuCtxSynchronize());
    EXPECT_EQ(words[3], 42U);
    unsigned type = 0;
    CU(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
    EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_HOST));
    properties.location.id = 1;
    EXPECT_EQ(cuMemCreate(&handle, kGranule, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    properties.location = {CU_MEM_LOCATION_TYPE_HOST, 0};
    CU(cuMemCreate(&handle, kGranule, &properties, 0));
    properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0};
    EXPECT_EQ(cuMemCreate(&handle, kGranule, &properties, 0), CUDA_ERROR_INVALID_VALUE);
  }));
}

// Device, host, device at one address: what an evicted buffer goes through.
TEST(Vmm, OneAddressShowsDeviceThenHostMemory) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const Extent extent = new_extent(kGranule);
    const CUmemAllocationProp properties = host_properties();
    CUmemGenericAllocationHandle slot = 0;
    CU(cuMemCreate(&slot, kGranule, &properties, 0));
    CUdeviceptr slot_address = 0;
    CU(cuMemAddressReserve(&slot_address, kGranule, 0, 0, 0));
    CU(cuMemMap(slot_address, kGranule, 0, slot, 0));
    CU(give_access(slot_address, kGranule));
    CU(gpu.launch_store(extent.address, kGranule / 4, 5, nullptr));
    CU(cuMemcpyDtoDAsync(slot_address, extent.address, kGranule, nullptr));
    CU(cuCtxSynchronize());
    CU(cuMemUnmap(extent.address, kGranule));
    CU(cuMemMap(extent.address, kGranule, 0, slot, 0));
    CU(give_access(extent.address, kGranule));
    CU(gpu.launch_add(extent.address, kGranule / 4, 1, nullptr));
    EXPECT_EQ(gpu.read(extent.address, 8)[7], 6U);
    EXPECT_EQ(gpu.read(slot_address, 8)[7], 6U);
  }));
}

// CUDA Driver API reference, "Device Management",
// CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: what a driver without it
// says and does.
TEST(Vmm, HostMemoryCanBeSwitchedOff) {
  EXPECT_CLEAN(in_child({{"SIMGPU_HOST_VMM", "0"}}, [] {
    Gpu gpu;
    const CUmemAllocationProp properties = host_properties();
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(cuMemCreate(&handle, kGranule, &properties, 0), CUDA_ERROR_NOT_SUPPORTED);
    int supported = 1;
    CU(cuDeviceGetAttribute(&supported,
                            CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
    EXPECT_EQ(supported, 0);
  }));
}

// CUDA Driver API reference, "Virtual Memory Management", cuMemSetAccess: no host access "for
// allocations created on with other location types".
TEST(Vmm, HostAccessOnlyToHostMemory) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const Extent extent = new_extent(kGranule);
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_HOST, 0},
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    EXPECT_EQ(cuMemSetAccess(extent.address, kGranule, &access, 1), CUDA_ERROR_INVALID_VALUE);
  }));
}

// The system allows a process 65530 mappings by default, and granules in reverse order cannot join.
TEST(Vmm, OutOfMappingsIsOutOfMemory) {
  EXPECT_CLEAN(in_child({{"SIMGPU_GRANULARITY", "4KiB"}}, [] {
    Gpu gpu;
    std::ifstream limit_file("/proc/sys/vm/max_map_count");
    size_t limit = 0;
    limit_file >> limit;
    if (limit == 0 || limit > 200'000) return;        // would take long
    const size_t count = (limit + 1000) / 512 * 512;  // whole 2 MiB
    const CUmemAllocationProp properties = device_properties();
    CUdeviceptr base = 0;
    CU(cuMemAddressReserve(&base, count * 4096, 0, 0, 0));
    std::vector<CUmemGenericAllocationHandle> handles(count);
    for (CUmemGenericAllocationHandle& handle : handles)
      CU(cuMemCreate(&handle, 4096, &properties, 0));
    size_t mapped = 0;
    CUresult result = CUDA_SUCCESS;
    for (; mapped < count && result == CUDA_SUCCESS; ++mapped) {
      const CUdeviceptr at = base + mapped * 4096;
      CU(cuMemMap(at, 4096, 0, handles[count - 1 - mapped], 0));
      result = give_access(at, 4096);
    }
    EXPECT_EQ(result, CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_GT(mapped, limit / 2);
    // The process goes on: it gets memory of its own, and what is mapped can be used and removed.
    std::vector<std::vector<char>> own(100, std::vector<char>(1 << 20));
    CU(gpu.launch_store(base, 4, 9, nullptr));
    EXPECT_EQ(gpu.read(base, 4)[3], 9U);
    for (size_t i = 0; i < mapped; ++i) CU(cuMemUnmap(base + i * 4096, 4096));
    CU(cuMemMap(base, 4096, 0, handles[0], 0));
    CU(give_access(base, 4096));
    CU(gpu.launch_store(base, 4, 7, nullptr));
    EXPECT_EQ(gpu.read(base, 4)[3], 7U);
  }));
}

// A thousand extents of a granule, mapped side by side, stay one mapping of the process.
TEST(Vmm, NeighboursAreFewMappings) {
  EXPECT_CLEAN(in_child({{"SIMGPU_GRANULARITY", "4KiB"}, {"SIMGPU_MEMORY", "2GiB"}}, [] {
    Gpu gpu;
    constexpr size_t kCount = 100000;
    constexpr size_t kSmall = 4096;
    CUdeviceptr address = 0;
    CU(cuMemAddressReserve(&address, kCount * kSmall + (2 << 20) - kCount * kSmall % (2 << 20), 0,
                           0, 0));
    const CUmemAllocationProp properties = device_properties();
    for (size_t i = 0; i < kCount; ++i) {
      CUmemGenericAllocationHandle handle = 0;
      CU(cuMemCreate(&handle, kSmall, &properties, 0));
      CU(cuMemMap(address + i * kSmall, kSmall, 0, handle, 0));
      CU(give_access(address + i * kSmall, kSmall));
    }
    CU(cuMemsetD8(address, 1, kCount * kSmall));
    CU(cuCtxSynchronize());
  }));
}

}  // namespace
}  // namespace simgpu::test
