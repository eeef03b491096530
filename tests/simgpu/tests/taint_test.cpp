// SPDX-License-Identifier: Apache-2.0
// The checker on content: what nobody wrote, and what a copy took from under a writer. Both may be
// copied about; a kernel that reads them, or a copy that brings them to the program, is reported.
#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {
namespace {

constexpr uint32_t kWords = 256;
constexpr size_t kBytes = 4 * kWords;

class Taint : public testing::TestWithParam<const char*> {
 protected:
  Outcome run(const std::function<void()>& body) {
    return in_child({{"SIMGPU_SCHEDULE", GetParam()}}, body);
  }
};

INSTANTIATE_TEST_SUITE_P(Schedules, Taint, testing::Values("fifo", "late", "random:1", "random:2"));

TEST_P(Taint, AKernelReadsWhatNobodyWrote) {
  EXPECT_REPORT(run([] {
                  Gpu gpu;
                  const CUdeviceptr p = allocate(kBytes);
                  CU(gpu.launch_add(p, kWords, 1, nullptr));
                  CU(cuCtxSynchronize());
                }),
                "nothing has written");
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    CU(gpu.launch_store(p, kWords, 1, nullptr));
    CU(gpu.launch_add(p, kWords, 1, nullptr));
    EXPECT_EQ(gpu.read(p, kWords)[7], 2U);
  }));
}

TEST_P(Taint, OnlyTheMissingPartIsReported) {
  EXPECT_REPORT(run([] {
                  Gpu gpu;
                  const CUdeviceptr p = allocate(kBytes);
                  CU(gpu.launch_store(p, kWords - 1, 1, nullptr));
                  CU(gpu.launch_add(p, kWords, 1, nullptr));
                  CU(cuCtxSynchronize());
                }),
                "(4 bytes)");
}

TEST_P(Taint, UnwrittenBytesTravelThroughCopies) {
  const auto there_and_back = [](bool read) {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    const CUdeviceptr q = allocate(kBytes);
    void* slot = allocate_pinned(kBytes);
    const CUstream stream = new_stream();
    CU(cuMemcpyDtoHAsync(slot, p, kBytes, stream));
    CU(cuMemcpyHtoDAsync(q, slot, kBytes, stream));
    if (read) {
      CU(gpu.launch_add(q, kWords, 1, stream));
    } else {
      CU(gpu.launch_store(q, kWords, 1, stream));
      CU(gpu.launch_add(q, kWords, 1, stream));
    }
    CU(cuCtxSynchronize());
  };
  EXPECT_REPORT(run([&] { there_and_back(true); }), "nothing has written");
  EXPECT_CLEAN(run([&] { there_and_back(false); }));
}

TEST_P(Taint, UnwrittenBytesReachTheProgram) {
  EXPECT_REPORT(run([] {
                  Gpu gpu;
                  uint32_t words[kWords];
                  CU(cuMemcpyDtoH(words, allocate(kBytes), kBytes));
                }),
                "takes to pageable memory");
}

// An eviction that was cancelled: the copy-out races with a later writer. Legal while nobody uses
// what it wrote.
void cancelled_eviction(bool use_the_slot) {
  Gpu gpu;
  const CUdeviceptr p = allocate(kBytes);
  const CUdeviceptr q = allocate(kBytes);
  void* slot = allocate_pinned(kBytes);
  const CUstream compute = new_stream();
  const CUstream out = new_stream();
  const CUstream in = new_stream();
  const CUevent used = new_event();
  const CUevent copied = new_event();
  CU(gpu.launch_store(p, kWords, 1, compute));
  CU(cuEventRecord(used, compute));
  CU(cuStreamWaitEvent(out, used, 0));
  CU(cuMemcpyDtoHAsync(slot, p, kBytes, out));
  CU(cuEventRecord(copied, out));
  CU(gpu.launch_add(p, kWords, 1, compute));  // no wait for the copy
  if (use_the_slot) {
    CU(cuStreamWaitEvent(in, copied, 0));
    CU(cuMemcpyHtoDAsync(q, slot, kBytes, in));
    CU(gpu.launch_add(q, kWords, 1, in));
  }
  CU(cuCtxSynchronize());
}

TEST_P(Taint, ACopyThatRacesWithALaterWriter) {
  EXPECT_CLEAN(run([] { cancelled_eviction(false); }));
  EXPECT_REPORT(run([] { cancelled_eviction(true); }), "whose source was written meanwhile");
}

// The same, and the slot is read again long before the writer comes: the report reaches back.
void read_before_the_race(bool ordered) {
  Gpu gpu;
  const CUdeviceptr p = allocate(kBytes);
  const CUdeviceptr q = allocate(kBytes);
  void* slot = allocate_pinned(kBytes);
  const CUstream compute = new_stream();
  const CUstream copies = new_stream();
  const CUevent done = new_event();
  Gate gate;
  CU(gpu.launch_store(p, kWords, 1, compute));
  CU(cuStreamSynchronize(compute));
  gate.close(compute);
  CU(cuMemcpyDtoHAsync(slot, p, kBytes, copies));
  CU(cuMemcpyHtoDAsync(q, slot, kBytes, copies));
  CU(gpu.launch_add(q, kWords, 1, copies));
  CU(cuEventRecord(done, copies));
  if (ordered) {
    CU(cuStreamWaitEvent(compute, done, 0));
  }
  CU(gpu.launch_add(p, kWords, 1, compute));
  while (cuStreamQuery(copies) == CUDA_ERROR_NOT_READY) {
  }
  gate.open();
  CU(cuStreamSynchronize(compute));
}

TEST_P(Taint, ReachesBackToWhatWasReadBeforeTheRace) {
  const Outcome outcome =
      in_child({{"SIMGPU_SCHEDULE", GetParam()}, {"SIMGPU_CHECK_THREADS", "own"}},
               [] { read_before_the_race(false); });
  EXPECT_REPORT(outcome, "has read");
  EXPECT_CLEAN(in_child({{"SIMGPU_SCHEDULE", GetParam()}, {"SIMGPU_CHECK_THREADS", "own"}},
                        [] { read_before_the_race(true); }));
}

// The slot of a cancelled eviction serves another buffer, and only then comes the writer.
TEST_P(Taint, WhatWasOverwrittenSinceIsNotTainted) {
  // Own knowledge: opening the gate must not tell the writer about the copies.
  const Environment own = {{"SIMGPU_SCHEDULE", GetParam()}, {"SIMGPU_CHECK_THREADS", "own"}};
  EXPECT_CLEAN(in_child(own, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    const CUdeviceptr q = allocate(kBytes);
    void* slot = allocate_pinned(kBytes);
    const CUstream compute = new_stream();
    const CUstream copies = new_stream();
    Gate gate;
    CU(cuMemsetD32(p, 1, kWords));
    CU(cuMemsetD32(q, 2, kWords));
    CU(cuCtxSynchronize());
    gate.close(compute);
    CU(cuMemcpyDtoHAsync(slot, p, kBytes, copies));
    CU(gpu.launch_add(p, kWords, 1, compute));
    CU(cuMemcpyDtoHAsync(slot, q, kBytes, copies));
    CU(cuMemcpyHtoDAsync(q, slot, kBytes, copies));
    while (cuStreamQuery(copies) == CUDA_ERROR_NOT_READY) {
    }
    gate.open();
    CU(cuCtxSynchronize());
    CU(cuMemcpyHtoDAsync(q, slot, kBytes, copies));
    CU(gpu.launch_add(q, kWords, 1, copies));
    EXPECT_EQ(gpu.read(q, 1)[0], 3U);
  }));
}

TEST_P(Taint, FreshMemoryIsUnwrittenThoughItWasUsedBefore) {
  EXPECT_REPORT(run([] {
                  Gpu gpu;
                  CUdeviceptr p = allocate(kBytes);
                  CU(gpu.launch_store(p, kWords, 1, nullptr));
                  CU(cuMemFree(p));
                  EXPECT_EQ(allocate(kBytes), p);  // last in, first out
                  CU(gpu.launch_add(p, kWords, 1, nullptr));
                  CU(cuCtxSynchronize());
                }),
                "nothing has written");
}

TEST_P(Taint, HostMemoryCountsAsWritten) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    void* pinned = allocate_pinned(kBytes);
    CU(cuMemcpyHtoD(p, pinned, kBytes));
    CU(gpu.launch_add(p, kWords, 1, nullptr));
    CU(gpu.launch_add(reinterpret_cast<CUdeviceptr>(pinned), kWords, 1, nullptr));
    CU(cuCtxSynchronize());
  }));
}

}  // namespace
}  // namespace simgpu::test
