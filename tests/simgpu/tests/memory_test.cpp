// SPDX-License-Identifier: Apache-2.0
// cuMemAlloc, host memory, and what an address is.
#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {
namespace {

// Seen on real drivers (PyTorch's notes on cudaMalloc): small requests come from blocks of 2
// MiB. CUDA Driver API reference, "Memory Management", cuMemAlloc: "suitably aligned for any
// kind of variable"; 0 bytes are CUDA_ERROR_INVALID_VALUE.
TEST(Memory, SmallAllocationsShareBlocks) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    size_t before = 0;
    size_t after = 0;
    CU(cuMemGetInfo(&before, nullptr));
    const CUdeviceptr a = allocate(1);
    const CUdeviceptr b = allocate(1);
    EXPECT_EQ(b - a, 512U);
    CU(cuMemGetInfo(&after, nullptr));
    EXPECT_EQ(before - after, size_t{2} << 20);
    const CUdeviceptr c = allocate((4 << 20) + 1);  // rounded to whole blocks
    CU(cuMemGetInfo(&after, nullptr));
    EXPECT_EQ(before - after, size_t{8} << 20);
    CU(cuMemFree(a));
    CU(cuMemFree(c));
    EXPECT_EQ(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemFree(b + 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(allocate(1), a);
    CU(cuMemFree(a));
    CU(cuMemFree(b));
    CU(cuMemGetInfo(&after, nullptr));
    EXPECT_EQ(before, after);
    CU(cuMemFree(0));
    CUdeviceptr p = 0;
    EXPECT_EQ(cuMemAlloc(&p, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAlloc(&p, size_t{1} << 40), CUDA_ERROR_OUT_OF_MEMORY);
  }));
}

// CUDA Driver API reference, "Memory Management", cuMemFree: "this API may perform implicit
// synchronization"; programs count on it, so here it always does.
TEST(Memory, FreeWaitsForTheDevice) {
  EXPECT_CLEAN(in_child({{"SIMGPU_SCHEDULE", "late"}}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(4096);
    const CUdeviceptr q = allocate(4096);
    auto* seen = static_cast<uint32_t*>(allocate_pinned(4096));
    seen[0] = 1;
    const CUstream stream = new_stream();
    CU(cuMemsetD32Async(p, 33, 1024, stream));
    CU(cuMemcpyDtoHAsync(seen, p, 4096, stream));
    EXPECT_EQ(seen[0], 1U);
    CU(cuMemFree(q));  // another one
    EXPECT_EQ(seen[0], 33U);
  }));
}

// CUDA Driver API reference, "Memory Management", cuMemHostAlloc, cuMemHostRegister (a range
// that is registered already: 712), cuMemHostUnregister, cuMemHostGetDevicePointer.
TEST(Memory, PinnedAndRegistered) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    auto* pinned = static_cast<uint32_t*>(allocate_pinned(4096));
    CUdeviceptr address = 0;
    CU(cuMemHostGetDevicePointer(&address, pinned + 1, 0));
    EXPECT_EQ(address, reinterpret_cast<CUdeviceptr>(pinned + 1));
    pinned[1] = 5;
    CU(gpu.launch_add(address, 1, 2, nullptr));
    CU(cuCtxSynchronize());
    EXPECT_EQ(pinned[1], 7U);
    unsigned flags = 0;
    CU(cuMemHostGetFlags(&flags, pinned));
    EXPECT_EQ(flags, static_cast<unsigned>(CU_MEMHOSTALLOC_DEVICEMAP));
    std::vector<uint32_t> plain(1024, 3);
    EXPECT_EQ(cuMemHostGetDevicePointer(&address, plain.data(), 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemHostRegister(plain.data(), 4096, 0));
    EXPECT_EQ(cuMemHostRegister(plain.data(), 4096, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    CU(gpu.launch_add(reinterpret_cast<CUdeviceptr>(plain.data()), 1024, 1, nullptr));
    CU(cuCtxSynchronize());
    EXPECT_EQ(plain[1023], 4U);
    EXPECT_EQ(cuMemHostUnregister(pinned), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    CU(cuMemHostUnregister(plain.data()));
    CU(cuMemFreeHost(pinned));
    EXPECT_EQ(cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);
  }));
}

// CUDA Driver API reference, CUresult, CUDA_ERROR_ILLEGAL_ADDRESS (700): "the device encountered
// a load or store instruction on an invalid memory address"; the context is lost.
TEST(Memory, AKernelCannotSeePlainHostMemory) {
  const Outcome outcome = in_child({}, [] {
    Gpu gpu;
    std::vector<uint32_t> plain(64, 3);
    CU(gpu.launch_add(reinterpret_cast<CUdeviceptr>(plain.data()), 64, 1, nullptr));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(plain[0], 3U);
  });
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

// CUDA C++ Programming Guide, "Device Memory": device memory is reached by kernels and copies;
// host code that reads it crashes.
TEST(Memory, HostCodeCannotTouchDeviceMemory) {
  for (const bool vmm : {false, true}) {
    const Outcome outcome = in_child({}, [vmm] {
      Gpu gpu;
      const CUdeviceptr p = vmm ? new_extent(2 << 20).address : allocate(4096);
      CU(cuMemsetD8(p, 0, 4096));
      CU(cuCtxSynchronize());
      *reinterpret_cast<volatile char*>(p) = 1;
    });
    EXPECT_NE(outcome.status, 0);  // killed, or ended by a sanitizer's handler
    EXPECT_TRUE(outcome.says("host code touched device memory at 0x")) << outcome.errors;
  }
}

// The driver takes no signal away from the program.
TEST(Memory, TheProgramsOwnHandlerIsStillCalled) {
  const Outcome outcome = in_child({}, [] {
    struct sigaction action = {};
    action.sa_handler = [](int) { _exit(42); };
    sigaction(SIGSEGV, &action, nullptr);
    Gpu gpu;
    *reinterpret_cast<volatile char*>(allocate(4096)) = 1;
  });
  EXPECT_EQ(outcome.status, 42) << outcome.errors;
}

template <class T>
T attribute(CUpointer_attribute which, CUdeviceptr address) {
  T value{};
  EXPECT_EQ(cuPointerGetAttribute(&value, which, address), CUDA_SUCCESS) << which;
  return value;
}

// CUDA Driver API reference, "Unified Addressing", cuPointerGetAttribute
// (CUDA_ERROR_INVALID_VALUE for a pointer that was "not allocated by, mapped by, or registered
// with a CUcontext"), cuPointerGetAttributes (null values then); memory of cuMemCreate is of no
// context and has no legacy IPC handle.
TEST(Memory, PointerAttributes) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(1000);
    const Extent extent = new_extent(2 << 20);
    void* pinned = allocate_pinned(100);
    EXPECT_EQ(attribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, p), gpu.context);
    EXPECT_EQ(attribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, extent.address), nullptr);
    EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p), 2U);
    EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  reinterpret_cast<CUdeviceptr>(pinned)),
              1U);
    EXPECT_EQ(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p + 9), p + 9);
    EXPECT_EQ(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 9), p);
    EXPECT_EQ(attribute<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + 9), 1000U);
    EXPECT_EQ(attribute<int>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p), 1);
    EXPECT_EQ(attribute<int>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, extent.address), 0);
    EXPECT_EQ(attribute<int>(CU_POINTER_ATTRIBUTE_MAPPED, extent.address), 1);
    EXPECT_EQ(attribute<int>(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, extent.address), 3);
    EXPECT_EQ(attribute<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, extent.address), 0);
    EXPECT_NE(attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, p),
              attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, extent.address));
    const CUdeviceptr second = map_again(extent);
    EXPECT_EQ(attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, second),
              attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, extent.address));
    CUdeviceptr base = 0;
    size_t size = 0;
    CU(cuMemGetAddressRange(&base, &size, extent.address + 5000));
    EXPECT_EQ(base, extent.address);
    EXPECT_EQ(size, size_t{2} << 20);
    EXPECT_EQ(cuMemGetAddressRange(&base, &size, 0x1000), CUDA_ERROR_NOT_FOUND);
    // Addresses that mean nothing: an error in the single query, null values in the other.
    unsigned type = 9;
    int plain = 0;
    const auto nowhere = reinterpret_cast<CUdeviceptr>(&plain);
    EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, nowhere),
              CUDA_ERROR_INVALID_VALUE);
    CUpointer_attribute which[2] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    CU_POINTER_ATTRIBUTE_DEVICE_POINTER};
    CUdeviceptr pointer = 9;
    void* data[2] = {&type, &pointer};
    CU(cuPointerGetAttributes(2, which, data, nowhere));
    EXPECT_EQ(type, 0U);
    EXPECT_EQ(pointer, 0U);
    CU(cuMemUnmap(extent.address, extent.bytes));
    EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, extent.address),
              CUDA_ERROR_INVALID_VALUE);
  }));
}

}  // namespace
}  // namespace simgpu::test
