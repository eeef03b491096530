// SPDX-License-Identifier: Apache-2.0
// Devices, contexts, errors and driver entries through the runtime.

#include <cuda.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "tests/simgpu/runtime/tests/support.h"

namespace simgpu::test {
namespace {

template <class Function>
Function entry(const char* name, unsigned version) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  EXPECT_CUDA(cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result));
  EXPECT_EQ(result, cudaDriverEntryPointSuccess) << name;
  return reinterpret_cast<Function>(found);
}

TEST(Device, ThePrimaryContextComesWithTheFirstCallThatNeedsIt) {
  const auto state =
      entry<CUresult (*)(CUdevice, unsigned*, int*)>("cuDevicePrimaryCtxGetState", 7000);
  const auto current = entry<CUresult (*)(CUcontext*)>("cuCtxGetCurrent", 4000);
  ASSERT_CUDA(cudaDeviceReset());
  unsigned flags = 0;
  int active = 1;
  EXPECT_EQ(state(0, &flags, &active), CUDA_SUCCESS);
  EXPECT_EQ(active, 0);
  int device = -1;
  EXPECT_CUDA(cudaGetDevice(&device));
  EXPECT_EQ(device, 0);
  EXPECT_EQ(state(0, &flags, &active), CUDA_SUCCESS);
  EXPECT_EQ(active, 0);  // asking which device is not using it
  EXPECT_CUDA(cudaFree(nullptr));
  EXPECT_EQ(state(0, &flags, &active), CUDA_SUCCESS);
  EXPECT_EQ(active, 1);
  // Another thread gets the same context at its own first call.
  CUcontext here = nullptr;
  EXPECT_EQ(current(&here), CUDA_SUCCESS);
  std::thread([&] {
    CUcontext there = nullptr;
    EXPECT_EQ(current(&there), CUDA_SUCCESS);
    EXPECT_EQ(there, nullptr);
    EXPECT_CUDA(cudaFree(nullptr));
    EXPECT_EQ(current(&there), CUDA_SUCCESS);
    EXPECT_EQ(there, here);
  }).join();
}

TEST(Device, ResetGivesAFreshContext) {
  cudaEvent_t event = nullptr;
  ASSERT_CUDA(cudaEventCreate(&event));
  ASSERT_CUDA(cudaDeviceReset());
  EXPECT_EQ(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  void* pointer = nullptr;
  ASSERT_CUDA(cudaMalloc(&pointer, 4096));
  EXPECT_CUDA(cudaFree(pointer));
  // Another thread still had the old context current.
  std::atomic<int> step{0};
  std::thread other([&] {
    EXPECT_CUDA(cudaFree(nullptr));
    step = 1;
    while (step != 2) std::this_thread::yield();
    void* mine = nullptr;
    EXPECT_CUDA(cudaMalloc(&mine, 4096));
    EXPECT_CUDA(cudaFree(mine));
  });
  while (step != 1) std::this_thread::yield();
  EXPECT_CUDA(cudaDeviceReset());
  step = 2;
  other.join();
}

TEST(Device, PropertiesArePlausible) {
  static_assert(sizeof(cudaDeviceProp) == 1008);
  cudaDeviceProp properties{};
  ASSERT_CUDA(cudaGetDeviceProperties(&properties, 0));
  EXPECT_GT(std::strlen(properties.name), 0U);
  EXPECT_EQ(properties.major, 8);
  EXPECT_EQ(properties.minor, 0);
  EXPECT_EQ(properties.warpSize, 32);
  EXPECT_EQ(properties.maxThreadsPerBlock, 1024);
  EXPECT_EQ(properties.maxGridSize[0], 2147483647);
  EXPECT_GT(properties.multiProcessorCount, 0);
  EXPECT_GE(properties.sharedMemPerBlockOptin, properties.sharedMemPerBlock);
  EXPECT_GE(properties.maxThreadsPerMultiProcessor, properties.maxThreadsPerBlock);
  EXPECT_EQ(properties.unifiedAddressing, 1);
  EXPECT_EQ(properties.memoryPoolsSupported, 1);
  size_t available = 0;
  size_t total = 0;
  EXPECT_CUDA(cudaMemGetInfo(&available, &total));
  EXPECT_EQ(properties.totalGlobalMem, total);
  int value = 0;
  EXPECT_CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
  EXPECT_EQ(value, 8);
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 99), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST(Device, BusIdsLeadBack) {
  char text[32] = {};
  EXPECT_CUDA(cudaDeviceGetPCIBusId(text, sizeof(text), 0));
  int device = -1;
  EXPECT_CUDA(cudaDeviceGetByPCIBusId(&device, text));
  EXPECT_EQ(device, 0);
}

TEST(Errors, AreKeptPerThread) {
  EXPECT_EQ(cudaSetDevice(77), cudaErrorInvalidDevice);
  std::thread([] { EXPECT_EQ(cudaGetLastError(), cudaSuccess); }).join();
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST(Errors, HaveNamesAndTexts) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(cudaGetErrorString(cudaSuccess), "no error");
  EXPECT_STREQ(cudaGetErrorName(static_cast<cudaError_t>(12345)), "unrecognized error code");
}

TEST(EntryPoints, HonourVersionAndFlavor) {
  void* old_entry = nullptr;
  void* new_entry = nullptr;
  cudaDriverEntryPointQueryResult result{};
  EXPECT_CUDA(cudaGetDriverEntryPointByVersion("cuMemCreate", &old_entry, 10020, cudaEnableDefault,
                                               &result));
  EXPECT_EQ(result, cudaDriverEntryPointSuccess);
  EXPECT_NE(old_entry, nullptr);
  EXPECT_CUDA(cudaGetDriverEntryPointByVersion("cuMemCreate", &new_entry, 9000, cudaEnableDefault,
                                               &result));
  EXPECT_EQ(result, cudaDriverEntryPointVersionNotSufficent);
  EXPECT_EQ(new_entry, nullptr);
  EXPECT_CUDA(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &new_entry, CUDART_VERSION,
                                               cudaEnableDefault, &result));
  EXPECT_EQ(result, cudaDriverEntryPointSymbolNotFound);
  void* legacy = nullptr;
  void* per_thread = nullptr;
  EXPECT_CUDA(cudaGetDriverEntryPointByVersion("cuMemcpyAsync", &legacy, CUDART_VERSION,
                                               cudaEnableLegacyStream, &result));
  EXPECT_CUDA(cudaGetDriverEntryPointByVersion("cuMemcpyAsync", &per_thread, CUDART_VERSION,
                                               cudaEnablePerThreadDefaultStream, &result));
  EXPECT_NE(legacy, per_thread);
}

TEST(Unmodelled, IsRefusedAndNamesItself) {
  cudaArray_t array = nullptr;
  testing::internal::CaptureStderr();
  EXPECT_EQ(cudaFreeArray(array), cudaErrorNotSupported);
  EXPECT_EQ(cudaFreeArray(array), cudaErrorNotSupported);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "simgpu: cudaFreeArray is not modelled\n");
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
}

}  // namespace
}  // namespace simgpu::test
