// SPDX-License-Identifier: Apache-2.0
// Stream-ordered allocation.
#include <atomic>
#include <thread>

#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {
namespace {

constexpr uint32_t kWords = 256;
constexpr size_t kBytes = 4 * kWords;
constexpr size_t kBlock = 2 << 20;

uint64_t attribute(CUmemPool_attribute which, CUmemoryPool pool) {
  cuuint64_t value = 0;
  EXPECT_EQ(cuMemPoolGetAttribute(pool, which, &value), CUDA_SUCCESS);
  return value;
}

CUmemoryPool default_pool() {
  CUmemoryPool pool = nullptr;
  EXPECT_EQ(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
  return pool;
}

CUdeviceptr allocate_async(size_t bytes, CUstream stream) {
  CUdeviceptr p = 0;
  EXPECT_EQ(cuMemAllocAsync(&p, bytes, stream), CUDA_SUCCESS);
  return p;
}

class PoolTest : public testing::TestWithParam<const char*> {
 protected:
  Outcome run(const std::function<void()>& body, const char* memory = "64MiB") {
    return in_child({{"SIMGPU_SCHEDULE", GetParam()}, {"SIMGPU_MEMORY", memory}}, body);
  }
};

INSTANTIATE_TEST_SUITE_P(Schedules, PoolTest, testing::Values("fifo", "late", "random:3"));

// CUDA Driver API reference, "Memory Management", cuMemFree: of memory that was allocated in stream
// order "no implicit synchronization".
TEST_P(PoolTest, CuMemFreeDoesNotWait) {
  EXPECT_CLEAN(run([] {
    const Gpu gpu;
    const CUstream stream = new_stream();
    const CUdeviceptr p = allocate_async(kBytes, stream);
    const CUdeviceptr freed_in_stream = allocate_async(kBytes, stream);
    CU(cuStreamSynchronize(stream));
    static std::atomic<bool> freed{false};
    const CUhostFn until_freed = [](void*) {
      while (!freed.load()) std::this_thread::yield();
    };
    CU(cuLaunchHostFunc(stream, until_freed, nullptr));
    CU(cuMemFree(p));
    CU(cuMemFreeAsync(freed_in_stream, stream));  // which is a free, though the stream stands
    EXPECT_EQ(cuMemFree(freed_in_stream), CUDA_ERROR_INVALID_VALUE);
    freed = true;
    CU(cuStreamSynchronize(stream));
  }));
}

// CUDA Programming Guide, "Stream Ordered Memory Allocator": memory freed in a stream can be
// used again by what follows in that stream.
TEST_P(PoolTest, TheSameStreamGetsThePieceBackAtOnce) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUstream stream = new_stream();
    CUdeviceptr first = 0;
    for (uint32_t i = 0; i < 20; ++i) {
      const CUdeviceptr p = allocate_async(kBytes, stream);
      if (i == 0) first = p;
      EXPECT_EQ(p, first);
      CU(gpu.launch_store(p, kWords, i, stream));
      CU(gpu.launch_add(p, kWords, 1, stream));
      CU(cuMemFreeAsync(p, stream));
    }
    CU(cuStreamSynchronize(stream));
  }));
}

// CUDA Driver API reference, "Stream Ordered Memory Allocator",
// CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: another stream gets it once the free has been
// reached, or behind an event.
TEST_P(PoolTest, AnotherStreamDoesNotGetItTooEarly) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUstream a = new_stream();
    const CUstream b = new_stream();
    Gate gate;
    const CUdeviceptr p = allocate_async(kBytes, a);
    gate.close(a);
    CU(gpu.launch_store(p, kWords, 1, a));
    CU(cuMemFreeAsync(p, a));
    const CUdeviceptr q = allocate_async(kBytes, b);
    EXPECT_NE(q, p);
    CU(gpu.launch_store(q, kWords, 2, b));
    gate.open();
    EXPECT_EQ(gpu.read(q, 1)[0], 2U);
  }));
}

// CUDA Driver API reference, "Stream Ordered Memory Allocator",
// CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: the driver makes the new owner's stream
// wait for the free.
TEST_P(PoolTest, OfShortMemoryAnotherStreamWaitsForIt) {
  EXPECT_CLEAN(run(
      [] {
        Gpu gpu;
        const CUstream a = new_stream();
        const CUstream b = new_stream();
        const size_t most = 3 * kBlock;  // of four blocks
        const CUdeviceptr p = allocate_async(most, a);
        CU(gpu.launch_store(p, kWords, 1, a));
        CU(cuMemFreeAsync(p, a));
        const CUdeviceptr q = allocate_async(most, b);
        EXPECT_EQ(q, p);
        CU(gpu.launch_store(q, kWords, 2, b));
        CU(gpu.launch_add(q, kWords, 3, b));
        EXPECT_EQ(gpu.read(q, 1)[0], 5U);
        CUdeviceptr no = 0;
        EXPECT_EQ(cuMemAllocAsync(&no, most, b), CUDA_ERROR_OUT_OF_MEMORY);
      },
      "8MiB"));
}

// CUDA Driver API reference, "Stream Ordered Memory Allocator", cuMemAllocAsync: it promises no
// content.
TEST_P(PoolTest, FreshMemoryIsUnwritten) {
  EXPECT_REPORT(run([] {
                  Gpu gpu;
                  const CUstream stream = new_stream();
                  const CUdeviceptr p = allocate_async(kBytes, stream);
                  CU(gpu.launch_store(p, kWords, 1, stream));
                  CU(cuMemFreeAsync(p, stream));
                  EXPECT_EQ(allocate_async(kBytes, stream), p);
                  CU(gpu.launch_add(p, kWords, 1, stream));
                  CU(cuStreamSynchronize(stream));
                }),
                "nothing has written");
}

// CUDA Driver API reference, "Stream Ordered Memory Allocator", cuMemPoolGetAttribute,
// cuMemPoolSetAttribute: only 0 resets the high marks.
TEST_P(PoolTest, Attributes) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUmemoryPool pool = default_pool();
    const CUstream stream = new_stream();
    size_t free_before = 0;
    size_t free_now = 0;
    CU(cuMemGetInfo(&free_before, nullptr));
    const CUdeviceptr a = allocate_async(1000, stream);
    const CUdeviceptr b = allocate_async(5 * kBlock, stream);
    EXPECT_EQ(attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, pool), 1024 + 5 * kBlock);
    EXPECT_EQ(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, pool), 6 * kBlock);
    CU(cuMemFreeAsync(b, stream));
    EXPECT_EQ(attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, pool), 1024U);
    EXPECT_EQ(attribute(CU_MEMPOOL_ATTR_USED_MEM_HIGH, pool), 1024 + 5 * kBlock);
    CU(cuMemGetInfo(&free_now, nullptr));
    EXPECT_EQ(free_before - free_now, 6 * kBlock);
    CU(cuStreamSynchronize(stream));  // the threshold is 0: unused memory goes back
    EXPECT_EQ(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, pool), kBlock);
    EXPECT_EQ(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, pool), 6 * kBlock);
    cuuint64_t zero = 0;
    cuuint64_t one = 1;
    EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one),
              CUDA_ERROR_INVALID_VALUE);
    CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
    EXPECT_EQ(attribute(CU_MEMPOOL_ATTR_USED_MEM_HIGH, pool), 1024U);
    CU(cuMemFreeAsync(a, stream));
    EXPECT_EQ(cuMemFreeAsync(a, stream), CUDA_ERROR_INVALID_VALUE);
  }));
}

// CUDA Driver API reference, "Stream Ordered Memory Allocator",
// CU_MEMPOOL_ATTR_RELEASE_THRESHOLD (released at the next synchronisation), cuMemPoolTrimTo.
TEST_P(PoolTest, TheThresholdKeepsMemoryUntilItIsTrimmed) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUmemoryPool pool = default_pool();
    const CUstream stream = new_stream();
    cuuint64_t all = ~cuuint64_t{0};
    CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    const CUdeviceptr p = allocate_async(4 * kBlock, stream);
    CU(cuMemFreeAsync(p, stream));
    CU(cuCtxSynchronize());
    EXPECT_EQ(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, pool), 4 * kBlock);
    // The rest of the driver gets it when it needs it.
    CUdeviceptr big = 0;
    CU(cuMemAlloc(&big, 31 * kBlock));
    EXPECT_EQ(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, pool), 0U);
    CU(cuMemFree(big));
    CU(cuMemFreeAsync(allocate_async(4 * kBlock, stream), stream));
    CU(cuStreamSynchronize(stream));
    CU(cuMemPoolTrimTo(pool, 0));
    EXPECT_EQ(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, pool), 0U);
  }));
}

// CUDA Driver API reference, "Stream Ordered Memory Allocator", cuMemPoolCreate,
// cuDeviceSetMemPool, cuMemPoolDestroy (the default pool cannot be destroyed; memory outlives
// its pool).
TEST_P(PoolTest, OwnPools) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    properties.maxSize = kBlock;
    CUmemoryPool pool = nullptr;
    CU(cuMemPoolCreate(&pool, &properties));
    CUdeviceptr p = 0;
    CU(cuMemAllocFromPoolAsync(&p, kBytes, pool, nullptr));
    CUdeviceptr q = 0;
    EXPECT_EQ(cuMemAllocFromPoolAsync(&q, kBlock, pool, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
    CUmemoryPool found = nullptr;
    CU(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    EXPECT_EQ(found, pool);
    CU(cuDeviceSetMemPool(0, pool));
    CU(cuMemAllocAsync(&q, kBytes, nullptr));
    CU(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, q));
    EXPECT_EQ(found, pool);
    CU(cuMemPoolDestroy(pool));
    EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
    CU(cuDeviceGetMemPool(&found, 0));
    EXPECT_EQ(found, default_pool());
    EXPECT_EQ(cuMemPoolDestroy(found), CUDA_ERROR_INVALID_VALUE);
    CU(gpu.launch_store(p, kWords, 4, nullptr));  // what is allocated lives on
    EXPECT_EQ(gpu.read(p, 1)[0], 4U);
    CU(cuMemFree(p));  // synchronously, which is allowed
    CU(cuMemFreeAsync(q, nullptr));
  }));
}

// CUDA Driver API reference, "Stream Ordered Memory Allocator", cuMemFreeAsync: "must not be
// accessed after stream execution reaches the free".
TEST_P(PoolTest, FreedByTheWrongOrder) {
  const Outcome outcome = run([] {
    Gpu gpu;
    const CUstream a = new_stream();
    const CUstream b = new_stream();
    const CUdeviceptr p = allocate_async(kBytes, a);
    CU(cuStreamSynchronize(a));
    CU(gpu.launch_store(p, kWords, 1, a));
    CU(cuMemFreeAsync(p, b));  // nothing orders it behind the kernel
    cuCtxSynchronize();
  });
  EXPECT_TRUE(outcome.says("cuMemFreeAsync") || outcome.says("which was freed")) << outcome.errors;
}

TEST_P(PoolTest, ManySizesOnTwoThreads) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const auto work = [&gpu](uint32_t seed) {
      CU(cuCtxSetCurrent(gpu.context));
      const CUstream stream = new_stream();
      for (uint32_t i = 0; i < 200; ++i) {
        const uint32_t words = 64 + (i * 7919 + seed) % 3000;
        const CUdeviceptr p = allocate_async(4 * words, stream);
        const CUdeviceptr q = allocate_async(4 * words, stream);
        CU(gpu.launch_store(p, words, i, stream));
        CU(gpu.launch_copy(q, p, words, stream));
        CU(cuMemFreeAsync(p, stream));
        CU(cuMemFreeAsync(q, stream));
        if (i % 50 == 0) {
          CU(cuStreamSynchronize(stream));
        }
      }
      CU(cuStreamSynchronize(stream));
    };
    std::thread other(work, 5);
    work(11);
    other.join();
  }));
}

}  // namespace
}  // namespace simgpu::test
