// SPDX-License-Identifier: Apache-2.0
// Memory that goes away under work: unmapping, freeing, releasing, reuse without a fence.
#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {
namespace {

constexpr uint32_t kWords = 256;
constexpr size_t kExtent = 2 << 20;

class Removal : public testing::TestWithParam<const char*> {
 protected:
  Outcome run(const std::function<void()>& body) {
    return in_child({{"SIMGPU_SCHEDULE", GetParam()}}, body);
  }
};

INSTANTIATE_TEST_SUITE_P(Schedules, Removal, testing::Values("fifo", "late", "random:1"));

// Returns once the stream has done what it has, without asking the driver.
void watch(Gpu& gpu, CUstream stream) {
  auto* word = static_cast<volatile uint32_t*>(allocate_pinned(4));
  *word = 0;
  CU(gpu.launch_store(reinterpret_cast<CUdeviceptr>(word), 1, 1, stream));
  while (*word == 0) {
  }
}

// The use is finished, but the program has not asked: luck.
void unmap(bool ask) {
  Gpu gpu;
  const Extent extent = new_extent(kExtent);
  const CUstream stream = new_stream();
  const CUevent event = new_event();
  CU(gpu.launch_store(extent.address, kWords, 1, stream));
  CU(cuEventRecord(event, stream));
  if (ask) {
    CU(cuEventSynchronize(event));
  } else {
    // Something else finishes meanwhile: it does not count.
    CU(cuStreamSynchronize(new_stream()));
    watch(gpu, stream);
  }
  CU(cuMemUnmap(extent.address, kExtent));
  CU(cuMemRelease(extent.handle));
  cuCtxSynchronize();
}

TEST_P(Removal, UnmapUnderWork) {
  EXPECT_REPORT(run([] { unmap(false); }), "cuMemUnmap takes away");
  EXPECT_CLEAN(run([] { unmap(true); }));
}

TEST_P(Removal, UnmapBeforeQueuedWorkRuns) {
  const Outcome outcome = run([] {
    Gpu gpu;
    const Extent extent = new_extent(kExtent);
    const CUstream stream = new_stream();
    Gate gate;
    gate.close(stream);
    CU(gpu.launch_store(extent.address, kWords, 1, stream));
    CU(cuMemUnmap(extent.address, kExtent));
    gate.open();
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    // Sticky.
    CUdeviceptr p = 0;
    EXPECT_EQ(cuMemAlloc(&p, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(outcome.says("illegal address: kernel store touched 0x")) << outcome.errors;
}

// The second mapping of the same memory is another matter.
TEST_P(Removal, AnotherMappingMayGo) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const Extent extent = new_extent(kExtent);
    const CUdeviceptr second = map_again(extent);
    const CUstream stream = new_stream();
    CU(gpu.launch_store(second, kWords, 5, stream));
    CU(cuMemUnmap(extent.address, kExtent));
    CU(cuStreamSynchronize(stream));
    EXPECT_EQ(gpu.read(second, 1)[0], 5U);
  }));
}

// Extents that pass from one buffer to the next, with and without the event between.
void hand_over(bool fence) {
  Gpu gpu;
  const Extent extent = new_extent(kExtent);
  const CUdeviceptr next = map_again(extent);
  const CUstream old_user = new_stream();
  const CUstream new_user = new_stream();
  const CUevent event = new_event();
  CU(gpu.launch_store(extent.address, kWords, 1, old_user));
  CU(cuEventRecord(event, old_user));
  if (fence) {
    CU(cuStreamWaitEvent(new_user, event, 0));
  }
  CU(gpu.launch_store(next, kWords, 2, new_user));
  CU(cuCtxSynchronize());
}

TEST_P(Removal, ExtentsReusedWithoutAFence) {
  EXPECT_REPORT(run([] { hand_over(false); }), "a race at");
  EXPECT_CLEAN(run([] { hand_over(true); }));
}

TEST_P(Removal, CuMemFreeWaitsForTheDevice) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(4 * kWords);
    CU(gpu.launch_store(p, kWords, 1, new_stream()));
    CU(cuMemFree(p));
    CU(cuCtxSynchronize());
  }));
}

TEST_P(Removal, UseAfterFree) {
  const Outcome outcome = run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(4 * kWords);
    CU(cuMemFree(p));
    CU(gpu.launch_store(p, kWords, 1, nullptr));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  });
  EXPECT_TRUE(outcome.says("which is not mapped")) << outcome.errors;
}

TEST_P(Removal, StreamOrderedUseAfterFree) {
  const Outcome outcome = run([] {
    Gpu gpu;
    const CUstream stream = new_stream();
    CUdeviceptr p = 0;
    CU(cuMemAllocAsync(&p, 4 * kWords, stream));
    CU(cuMemFreeAsync(p, stream));
    CU(gpu.launch_store(p, kWords, 1, stream));
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  });
  EXPECT_TRUE(outcome.says("which was freed")) << outcome.errors;
}

void use_on_other_stream(bool before_alloc_waits, bool before_free_waits) {
  Gpu gpu;
  const CUstream owner = new_stream();
  const CUstream other = new_stream();
  const CUevent event = new_event();
  CUdeviceptr p = 0;
  CU(cuMemAllocAsync(&p, 4 * kWords, owner));
  CU(cuEventRecord(event, owner));
  if (before_alloc_waits) {
    CU(cuStreamWaitEvent(other, event, 0));
  }
  // From here on the context may be lost.
  gpu.launch_store(p, kWords, 1, other);
  cuEventRecord(event, other);
  if (before_free_waits) cuStreamWaitEvent(owner, event, 0);
  cuMemFreeAsync(p, owner);
  cuCtxSynchronize();
}

TEST_P(Removal, StreamOrderedMemoryOnAnotherStream) {
  EXPECT_CLEAN(run([] { use_on_other_stream(true, true); }));
  for (const bool allocation : {false, true}) {  // one of the two waits
    const Outcome outcome = run([=] { use_on_other_stream(allocation, !allocation); });
    // A report, or, if the schedule makes it so, an illegal address.
    EXPECT_TRUE(outcome.says("a race at") || outcome.says("illegal address")) << outcome.errors;
  }
}

TEST_P(Removal, HostMemoryUnregisteredUnderACopy) {
  const auto body = [](bool wait) {
    Gpu gpu;
    std::vector<uint32_t> host(kWords, 4);
    CU(cuMemHostRegister(host.data(), 4 * kWords, 0));
    const CUdeviceptr p = allocate(4 * kWords);
    const CUstream stream = new_stream();
    CU(cuMemcpyHtoDAsync(p, host.data(), 4 * kWords, stream));
    if (wait) {
      CU(cuStreamSynchronize(stream));
    } else {
      watch(gpu, stream);
    }
    CU(cuMemHostUnregister(host.data()));
  };
  EXPECT_CLEAN(run([&] { body(true); }));
  EXPECT_REPORT(run([&] { body(false); }), "cuMemHostUnregister takes away");
}

}  // namespace
}  // namespace simgpu::test
