// SPDX-License-Identifier: Apache-2.0
// What a real driver refuses, and where it keeps a program waiting; each with where that is said.
#include <atomic>
#include <ctime>
#include <functional>
#include <thread>

#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {
namespace {

constexpr uint32_t kWords = 64;

// cuda.h, CUDA_ERROR_INVALID_CONTEXT (201): "there is no context bound to the current thread".
TEST(Refusals, NoContextNoWork) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(4 * kWords);
    CUcontext popped = nullptr;
    CU(cuCtxPopCurrent(&popped));
    CUgraphExec exec = nullptr;
    EXPECT_EQ(gpu.launch_store(p, kWords, 1, nullptr), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuMemcpyDtoD(p, p, 4), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuMemFree(p), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL),
              CUDA_ERROR_INVALID_CONTEXT);
    CU(cuCtxPushCurrent(popped));
    CU(cuMemFree(p));
  }));
}

// cuda.h, cuEventRecord: "hEvent and hStream must be from the same context" (400);
// cuStreamWaitEvent: "hEvent may be from a different context or device than hStream".
TEST(Refusals, EventsBelongToAContext) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUevent event = new_event();
    CUcontext other = nullptr;
    CU(cuCtxCreate(&other, nullptr, 0, 0));
    const CUstream stream = new_stream();
    EXPECT_EQ(cuEventRecord(event, stream), CUDA_ERROR_INVALID_HANDLE);
    CU(cuStreamWaitEvent(stream, event, 0));
    // cuLaunchKernel, too, wants its stream in the current context.
    CU(cuCtxSetCurrent(gpu.context));
    const CUdeviceptr p = allocate(4 * kWords);
    EXPECT_EQ(gpu.launch_store(p, kWords, 1, stream), CUDA_ERROR_INVALID_HANDLE);
  }));
}

// CUDA C++ Programming Guide, "Asynchronous Concurrent Execution": launches are queued; the depth,
// 1024 on current drivers, is what profilers show and no manual says.
TEST(Stalls, ALaunchBlocksAtAThousandPendingOnes) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(4 * kWords);
    const CUstream stream = new_stream();
    Gate gate;
    gate.close(stream);
    std::atomic<int> launched{0};
    std::thread thread([&] {
      cuCtxSetCurrent(gpu.context);
      for (int i = 0; i < 1100; ++i) {
        gpu.launch_store(p, 1, 1, stream);
        ++launched;
      }
    });
    for (int i = 0; i < 200 && launched.load() < 1023; ++i) {
      const timespec pause{0, 10000000};
      nanosleep(&pause, nullptr);
    }
    const timespec pause{0, 100000000};
    nanosleep(&pause, nullptr);
    EXPECT_EQ(launched.load(), 1023);  // and the gate
    gate.open();
    thread.join();
    EXPECT_EQ(launched.load(), 1100);
    CU(cuCtxSynchronize());
  }));
}

// CUDA C++ Programming Guide, "Lazy Loading": a module's code is loaded at its first use, which
// takes memory, and may fail for want of it.
TEST(Stalls, TheFirstLaunchTakesMemory) {
  EXPECT_CLEAN(in_child({{"SIMGPU_CODE_BYTES", "4MiB"}, {"SIMGPU_MEMORY", "64MiB"}}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(4 * kWords);
    const CUdeviceptr rest = allocate(60 << 20);
    EXPECT_EQ(gpu.launch_store(p, kWords, 1, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
    CU(cuMemFree(rest));
    size_t before = 0;
    size_t after = 0;
    CU(cuMemGetInfo(&before, nullptr));
    CU(gpu.launch_store(p, kWords, 1, nullptr));
    CU(gpu.launch_add(p, kWords, 1, nullptr));  // of the same module
    CU(cuMemGetInfo(&after, nullptr));
    EXPECT_EQ(before - after, size_t{4} << 20);
    CU(cuCtxSynchronize());
    CU(cuModuleUnload(gpu.module));
    CU(cuMemGetInfo(&after, nullptr));
    EXPECT_EQ(before, after);
  }));
}

// cuda.h, "API synchronization behavior": to pageable memory a copy returns when it is done.
TEST(Stalls, PageableCopiesWait) {
  EXPECT_CLEAN(in_child({{"SIMGPU_SCHEDULE", "late"}}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(4 * kWords);
    const CUstream stream = new_stream();
    std::vector<uint32_t> words(kWords);
    CU(gpu.launch_store(p, kWords, 6, stream));
    CU(cuMemcpyDtoHAsync(words.data(), p, 4 * kWords, stream));
    EXPECT_EQ(words[kWords - 1], 6U);
    auto* pinned = static_cast<uint32_t*>(allocate_pinned(4 * kWords));
    pinned[0] = 0;
    CU(cuMemcpyDtoHAsync(pinned, p, 4 * kWords, stream));
    EXPECT_EQ(pinned[0], 0U);  // not to pinned memory
    CU(cuStreamSynchronize(stream));
    EXPECT_EQ(pinned[0], 6U);
  }));
}

// What each of the entries that pin answers while a stream waits for the program: whether it has
// returned before the stream could go on.
void expect_pinning(bool waits) {
  Gpu gpu;
  const CUstream stream = new_stream();
  Gate gate;
  static char registered[4096];
  const std::function<CUresult()> pins[] = {
      [] {
        void* pointer = nullptr;
        return cuMemHostAlloc(&pointer, 4096, 0);
      },
      [] {
        void* pointer = nullptr;
        return cuMemAllocHost(&pointer, 4096);
      },
      [] { return cuMemHostRegister(registered, sizeof registered, 0); },
  };
  for (const auto& pin : pins) {
    gate.close(stream);
    std::atomic<bool> returned{false};
    std::thread thread([&] {
      cuCtxSetCurrent(gpu.context);
      EXPECT_EQ(pin(), CUDA_SUCCESS);
      returned = true;
    });
    for (int i = 0; i < (waits ? 10 : 1000) && !returned; ++i) {
      const timespec pause{0, 10000000};
      nanosleep(&pause, nullptr);
    }
    EXPECT_EQ(returned.load(), !waits);
    EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    gate.open();
    thread.join();
    CU(cuStreamSynchronize(stream));
    gate.shut();
  }
}

// CUDA C++ Programming Guide, "Implicit Synchronization": commands from different streams cannot
// run concurrently if the host issues "a page-locked host memory allocation" between them. Drivers
// do not always make the caller wait for it; a program must not depend on either.
TEST(Stalls, PinningWaitsWhereThatIsAskedFor) {
  EXPECT_CLEAN(in_child({{"SIMGPU_PINNING_WAITS", "1"}}, [] { expect_pinning(true); }));
  EXPECT_CLEAN(in_child({{"SIMGPU_PINNING_WAITS", "1"}, {"SIMGPU_CLOCK", "virtual"}},
                        [] { expect_pinning(true); }));
  EXPECT_CLEAN(in_child({{"SIMGPU_PINNING_WAITS", "0"}, {"SIMGPU_CLOCK", "virtual"}},
                        [] { expect_pinning(false); }));
  EXPECT_CLEAN(in_child({}, [] { expect_pinning(false); }));
}

// Seen on real drivers, said nowhere: what is given back last comes first.
TEST(Refusals, HandlesAndAddressesComeBackLastInFirstOut) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUevent a = new_event();
    const CUevent b = new_event();
    CU(cuEventDestroy(a));
    CU(cuEventDestroy(b));
    EXPECT_EQ(new_event(), b);
    EXPECT_EQ(new_event(), a);
    CUgraph graph = nullptr;
    CU(cuGraphCreate(&graph, 0));
    CU(cuGraphDestroy(graph));
    CUgraph again = nullptr;
    CU(cuGraphCreate(&again, 0));
    EXPECT_EQ(graph, again);
    const CUdeviceptr p = allocate(4 << 20);
    const CUdeviceptr q = allocate(4 << 20);
    CU(cuMemFree(p));
    CU(cuMemFree(q));
    EXPECT_EQ(allocate(4 << 20), q);
    EXPECT_EQ(allocate(4 << 20), p);
  }));
}

}  // namespace
}  // namespace simgpu::test
