// SPDX-License-Identifier: Apache-2.0
// Faults on request, and memory that runs short where it is told to.
#include <sys/mman.h>

#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {
namespace {

TEST(Faults, TheCallsThatAreNamedFail) {
  EXPECT_CLEAN(in_child(
      {{"SIMGPU_FAULTS", "cuMemAlloc:2=2,cuEventCreate:1-2=INVALID_VALUE,cuStreamQuery:3+=600"}},
      [] {
        Gpu gpu;
        CUdeviceptr p = 0;
        CU(cuMemAlloc(&p, 64));
        CUdeviceptr q = 7;
        EXPECT_EQ(cuMemAlloc(&q, 64), CUDA_ERROR_OUT_OF_MEMORY);
        EXPECT_EQ(q, 7U);  // nothing happened
        CU(cuMemAlloc(&q, 64));
        CUevent event = nullptr;
        EXPECT_EQ(cuEventCreate(&event, 0), CUDA_ERROR_INVALID_VALUE);
        EXPECT_EQ(cuEventCreate(&event, 0), CUDA_ERROR_INVALID_VALUE);
        CU(cuEventCreate(&event, 0));
        const CUstream stream = new_stream();
        CU(cuStreamQuery(stream));
        CU(cuStreamQuery(stream));
        for (int i = 0; i < 3; ++i) EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
      }));
}

TEST(Faults, ANameStandsForAllItsVersions) {
  EXPECT_CLEAN(in_child({{"SIMGPU_FAULTS", "cuMemsetD8Async:1=999,cuStreamCreate:2=2"}}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(64);
    void* per_thread = nullptr;
    CU(cuGetProcAddress("cuMemsetD8Async", &per_thread, 13000,
                        CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr));
    using Fill = CUresult (*)(CUdeviceptr, unsigned char, size_t, CUstream);
    EXPECT_EQ(reinterpret_cast<Fill>(per_thread)(p, 0, 64, nullptr), CUDA_ERROR_UNKNOWN);
    CU(cuMemsetD8Async(p, 0, 64, nullptr));
    CUstream stream = nullptr;
    CU(cuStreamCreateWithPriority(&stream, 0, 0));  // another name
    CU(cuStreamCreate(&stream, 0));
    EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_ERROR_OUT_OF_MEMORY);
    CU(cuCtxSynchronize());
  }));
}

TEST(Faults, AStickyCodeLosesTheContext) {
  EXPECT_CLEAN(in_child({{"SIMGPU_FAULTS", "cuLaunchKernel:2=700"}}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(256);
    CU(gpu.launch_store(p, 8, 1, nullptr));
    EXPECT_EQ(gpu.launch_store(p, 8, 1, nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cuMemFree(p), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  }));
}

TEST(Faults, ABadListIsToldAndIgnored) {
  const Outcome outcome = in_child({{"SIMGPU_FAULTS", "cuMemAlloc:1=2,cuMemFree=2"}}, [] {
    Gpu gpu;
    allocate(64);
  });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(outcome.says("\"cuMemFree=2\" is not NAME:CALL=CODE")) << outcome.errors;
}

TEST(Faults, PinnedMemoryIsLimited) {
  EXPECT_CLEAN(in_child({{"SIMGPU_PIN_LIMIT", "8MiB"}}, [] {
    Gpu gpu;
    constexpr size_t kPart = 4 << 20;
    void* first = allocate_pinned(kPart);
    void* plain = mmap(nullptr, kPart, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CU(cuMemHostRegister(plain, kPart, 0));
    void* more = nullptr;
    EXPECT_EQ(cuMemHostAlloc(&more, 4096, 0), CUDA_ERROR_OUT_OF_MEMORY);
    CU(cuMemFreeHost(first));
    CU(cuMemHostAlloc(&more, kPart, 0));
    CU(cuMemHostUnregister(plain));
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAllocationProp properties = host_properties();
    CU(cuMemCreate(&handle, kPart, &properties, 0));
    EXPECT_EQ(cuMemHostRegister(plain, kPart, 0), CUDA_ERROR_OUT_OF_MEMORY);
  }));
}

}  // namespace
}  // namespace simgpu::test
