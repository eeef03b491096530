// SPDX-License-Identifier: Apache-2.0
// Initialisation, devices, contexts.
#include <cstring>
#include <thread>

#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {
namespace {

// CUDA Driver API reference, "Initialization", cuInit: any function before it "will return
// CUDA_ERROR_NOT_INITIALIZED"; flags must be 0.
TEST(Context, NothingWorksBeforeInit) {
  EXPECT_CLEAN(in_child({}, [] {
    int count = 0;
    EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    CUdeviceptr p = 0;
    EXPECT_EQ(cuMemAlloc(&p, 4), CUDA_ERROR_NOT_INITIALIZED);
    int version = 0;
    CU(cuDriverGetVersion(&version));
    EXPECT_EQ(version, 13000);
    EXPECT_EQ(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    CU(cuInit(0));
    CU(cuInit(0));
    CU(cuDeviceGetCount(&count));
    EXPECT_EQ(count, 1);
  }));
}

// CUDA Driver API reference, CUresult, CUDA_ERROR_NO_DEVICE (100).
TEST(Context, AMachineWithoutAGpu) {
  EXPECT_CLEAN(in_child({{"SIMGPU_DEVICES", "0"}}, [] {
    EXPECT_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
    int count = 0;
    EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  }));
}

// CUDA Driver API reference, CUresult, CUDA_ERROR_INVALID_CONTEXT (201); "Stream Ordered Memory
// Allocator", cuMemAllocAsync: the stream says whose memory it is.
TEST(Context, EverythingNeedsACurrentContext) {
  EXPECT_CLEAN(in_child({}, [] {
    CU(cuInit(0));
    CUdeviceptr p = 0;
    CUstream stream = nullptr;
    CUevent event = nullptr;
    EXPECT_EQ(cuMemAlloc(&p, 4), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuEventCreate(&event, 0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuMemAllocAsync(&p, 4, nullptr), CUDA_ERROR_INVALID_CONTEXT);
    CUcontext context = nullptr;
    CU(cuCtxGetCurrent(&context));
    EXPECT_EQ(context, nullptr);
    // Of another thread it is no business either.
    Gpu gpu;
    std::thread([] {
      CUdeviceptr q = 0;
      EXPECT_EQ(cuMemAlloc(&q, 4), CUDA_ERROR_INVALID_CONTEXT);
    }).join();
    CU(cuMemAlloc(&p, 4));
    // An explicit stream is enough for a stream-ordered allocation.
    const CUstream explicit_stream = new_stream();
    std::thread([=] {
      CUdeviceptr q = 0;
      CU(cuMemAllocAsync(&q, 4, explicit_stream));
      CU(cuMemFreeAsync(q, explicit_stream));
    }).join();
  }));
}

// CUDA Driver API reference, "Primary Context Management": retained and released by count, not
// destroyed by cuCtxDestroy; handles of an ended one are CUDA_ERROR_CONTEXT_IS_DESTROYED.
TEST(Context, PrimaryContext) {
  EXPECT_CLEAN(in_child({}, [] {
    CU(cuInit(0));
    unsigned flags = 9;
    int active = 9;
    CU(cuDevicePrimaryCtxGetState(0, &flags, &active));
    EXPECT_EQ(active, 0);
    CU(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_YIELD));
    CUcontext a = nullptr;
    CUcontext b = nullptr;
    CU(cuDevicePrimaryCtxRetain(&a, 0));
    CU(cuDevicePrimaryCtxRetain(&b, 0));
    EXPECT_EQ(a, b);
    CU(cuDevicePrimaryCtxGetState(0, &flags, &active));
    EXPECT_EQ(active, 1);
    EXPECT_EQ(flags, static_cast<unsigned>(CU_CTX_SCHED_YIELD));
    EXPECT_EQ(cuCtxDestroy(a), CUDA_ERROR_INVALID_CONTEXT);
    CU(cuDevicePrimaryCtxRelease(0));
    CU(cuCtxSetCurrent(a));
    CU(cuCtxSynchronize());
    const CUstream stream = new_stream();
    CU(cuDevicePrimaryCtxRelease(0));
    EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CU(cuDevicePrimaryCtxRetain(&b, 0));
    CU(cuCtxSetCurrent(b));
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&a, 1), CUDA_ERROR_INVALID_DEVICE);
  }));
}

// CUDA Driver API reference, "Primary Context Management", cuDevicePrimaryCtxReset: "destroy all
// allocations and reset all state on the primary context".
TEST(Context, ResetGivesItsMemoryBack) {
  EXPECT_CLEAN(in_child({{"SIMGPU_MEMORY", "64MiB"}}, [] {
    Gpu gpu;
    size_t before = 0;
    size_t after = 0;
    CU(cuMemGetInfo(&before, nullptr));
    const CUdeviceptr p = allocate(20 << 20);
    allocate(100);
    allocate_pinned(100);
    CU(gpu.launch_store(p, 100, 1, new_stream()));
    CU(cuDevicePrimaryCtxReset(0));
    Gpu again;
    CU(cuMemGetInfo(&after, nullptr));
    EXPECT_EQ(before, after);
    EXPECT_EQ(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
  }));
}

// CUDA Driver API reference, "Context Management", cuCtxCreate (pushes), cuCtxPushCurrent,
// cuCtxPopCurrent, cuCtxSetCurrent (replaces the top; null pops), cuCtxDestroy.
TEST(Context, TheStack) {
  EXPECT_CLEAN(in_child({{"SIMGPU_DEVICES", "2"}}, [] {
    CU(cuInit(0));
    CUcontext a = nullptr;
    CUcontext b = nullptr;
    CUcontext current = nullptr;
    CU(cuCtxCreate(&a, nullptr, 0, 0));
    CU(cuCtxCreate(&b, nullptr, 0, 1));
    CUdevice device = 9;
    CU(cuCtxGetDevice(&device));
    EXPECT_EQ(device, 1);
    unsigned long long id_a = 0;
    unsigned long long id_b = 0;
    CU(cuCtxGetId(a, &id_a));
    CU(cuCtxGetId(nullptr, &id_b));
    EXPECT_NE(id_a, id_b);
    CU(cuCtxPopCurrent(&current));
    EXPECT_EQ(current, b);
    CU(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, a);
    CU(cuCtxPushCurrent(b));
    CU(cuCtxDestroy(b));
    CU(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, a);
    CU(cuCtxSetCurrent(nullptr));
    CU(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, nullptr);
  }));
}

// CUDA Driver API reference, "Device Management".
TEST(Context, Devices) {
  EXPECT_CLEAN(in_child({{"SIMGPU_DEVICES", "2"}, {"SIMGPU_MEMORY", "3GiB"}}, [] {
    CU(cuInit(0));
    size_t bytes = 0;
    CU(cuDeviceTotalMem(&bytes, 1));
    EXPECT_EQ(bytes, size_t{3} << 30);
    EXPECT_EQ(cuDeviceTotalMem(&bytes, 2), CUDA_ERROR_INVALID_DEVICE);
    int value = 0;
    CU(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    EXPECT_EQ(value, 8);
    for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; ++i) {
      EXPECT_EQ(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(i), 0), CUDA_SUCCESS)
          << i;
    }
    EXPECT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
    CUuuid a = {};
    CUuuid b = {};
    CU(cuDeviceGetUuid(&a, 0));
    CU(cuDeviceGetUuid(&b, 1));
    EXPECT_NE(std::memcmp(&a, &b, sizeof a), 0);
    char bus[20];
    CUdevice device = 9;
    CU(cuDeviceGetPCIBusId(bus, sizeof bus, 1));
    CU(cuDeviceGetByPCIBusId(&device, bus));
    EXPECT_EQ(device, 1);
    int can = 0;
    CU(cuDeviceCanAccessPeer(&can, 0, 1));
    EXPECT_EQ(can, 1);
    const char* text = nullptr;
    CU(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    EXPECT_STREQ(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
    CU(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
    EXPECT_STREQ(text, "out of memory");
    EXPECT_EQ(cuGetErrorName(static_cast<CUresult>(998), &text), CUDA_ERROR_INVALID_VALUE);
  }));
}

}  // namespace
}  // namespace simgpu::test
