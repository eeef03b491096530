// SPDX-License-Identifier: Apache-2.0
// The checker on kernels, fills and copies: each wrong program is reported under every schedule,
// its right twin never.
#include <atomic>
#include <thread>

#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {
namespace {

constexpr uint32_t kWords = 256;

class Race : public testing::TestWithParam<const char*> {
 protected:
  Outcome run(const std::function<void()>& body) {
    return in_child({{"SIMGPU_SCHEDULE", GetParam()}}, body);
  }
};

INSTANTIATE_TEST_SUITE_P(Schedules, Race, testing::Values("fifo", "late", "random:1", "random:2"));

void two_kernels(bool ordered) {
  Gpu gpu;
  const CUdeviceptr p = allocate(4 * kWords);
  const CUstream first = new_stream();
  const CUstream second = new_stream();
  const CUevent event = new_event();
  CU(gpu.launch_store(p, kWords, 1, first));
  CU(cuEventRecord(event, first));
  if (ordered) {
    CU(cuStreamWaitEvent(second, event, 0));
  }
  CU(gpu.launch_add(p, kWords, 1, second));
  CU(cuCtxSynchronize());
}

TEST_P(Race, KernelsWithoutAWait) {
  EXPECT_REPORT(run([] { two_kernels(false); }), "a race at");
  EXPECT_CLEAN(run([] { two_kernels(true); }));
}

void two_readers(bool write) {
  Gpu gpu;
  const CUdeviceptr p = allocate(4 * kWords);
  const CUdeviceptr a = allocate(4 * kWords);
  const CUdeviceptr b = allocate(4 * kWords);
  const CUstream first = new_stream();
  const CUstream second = new_stream();
  CU(cuMemsetD32(p, 3, kWords));
  CU(cuCtxSynchronize());
  CU(gpu.launch_copy(a, p, kWords, first));
  CU(gpu.launch_copy(b, p, kWords, second));
  if (write) {
    CU(gpu.launch_add(p, kWords, 1, first));
  }
  CU(cuCtxSynchronize());
}

TEST_P(Race, ReadersMayBeUnorderedButNotAWriter) {
  EXPECT_CLEAN(run([] { two_readers(false); }));
  EXPECT_REPORT(run([] { two_readers(true); }), "a race at");
}

// A reader that comes after a writer, and writes nothing there itself.
void reader_after_writer(bool ordered) {
  Gpu gpu;
  const CUdeviceptr p = allocate(4 * kWords);
  const CUdeviceptr q = allocate(4 * kWords);
  const CUstream first = new_stream();
  CU(cuMemsetD32(p, 3, kWords));
  CU(cuCtxSynchronize());
  CU(gpu.launch_store(p, kWords, 1, first));
  if (ordered) {
    CU(cuStreamSynchronize(first));
  }
  CU(gpu.launch_copy(q, p, kWords, new_stream()));
  CU(cuCtxSynchronize());
}

TEST_P(Race, AReaderAfterAWriter) {
  EXPECT_REPORT(run([] { reader_after_writer(false); }), "a race at");
  EXPECT_CLEAN(run([] { reader_after_writer(true); }));
}

void fill_and_kernel(bool synchronized) {
  Gpu gpu;
  const CUdeviceptr p = allocate(4 * kWords);
  const CUstream stream = new_stream();
  CU(cuMemsetD32Async(p, 3, kWords, stream));
  if (synchronized) {
    CU(cuStreamSynchronize(stream));
  }
  CU(gpu.launch_add(p, kWords, 1, new_stream()));
  CU(cuCtxSynchronize());
}

TEST_P(Race, FillsCountAsKernels) {
  EXPECT_REPORT(run([] { fill_and_kernel(false); }), "fill");
  EXPECT_CLEAN(run([] { fill_and_kernel(true); }));
}

// A copy into memory that a kernel still reads: nothing like a cancelled eviction, an error at
// once.
void restore_over_reader(bool ordered) {
  Gpu gpu;
  const CUdeviceptr p = allocate(4 * kWords);
  const CUdeviceptr q = allocate(4 * kWords);
  void* slot = allocate_pinned(4 * kWords);
  const CUstream compute = new_stream();
  const CUstream copies = new_stream();
  const CUevent event = new_event();
  CU(cuMemsetD32Async(p, 3, kWords, compute));
  CU(gpu.launch_copy(q, p, kWords, compute));
  CU(cuEventRecord(event, compute));
  if (ordered) {
    CU(cuStreamWaitEvent(copies, event, 0));
  }
  CU(cuMemcpyHtoDAsync(p, slot, 4 * kWords, copies));
  CU(cuCtxSynchronize());
}

TEST_P(Race, CopyOverWhatIsRead) {
  EXPECT_REPORT(run([] { restore_over_reader(false); }), "a race at");
  EXPECT_CLEAN(run([] { restore_over_reader(true); }));
}

// A host slot that a copy writes while another copy still reads it.
void slot_reuse(bool ordered) {
  Gpu gpu;
  const CUdeviceptr p = allocate(4 * kWords);
  const CUdeviceptr q = allocate(4 * kWords);
  void* slot = allocate_pinned(4 * kWords);
  const CUstream out = new_stream();
  const CUstream in = new_stream();
  const CUevent event = new_event();
  CU(cuMemsetD32(p, 3, kWords));
  CU(cuCtxSynchronize());
  CU(cuMemcpyHtoDAsync(q, slot, 4 * kWords, in));
  CU(cuEventRecord(event, in));
  if (ordered) {
    CU(cuStreamWaitEvent(out, event, 0));
  }
  CU(cuMemcpyDtoHAsync(slot, p, 4 * kWords, out));
  CU(cuCtxSynchronize());
}

TEST_P(Race, SlotRewrittenWhileRead) {
  EXPECT_REPORT(run([] { slot_reuse(false); }), "a race at");
  EXPECT_CLEAN(run([] { slot_reuse(true); }));
}

// Knowing by asking: a query that says "done" orders what comes after it.
void polled(bool until_done) {
  Gpu gpu;
  const CUdeviceptr p = allocate(4 * kWords);
  const CUstream first = new_stream();
  const CUevent event = new_event();
  CU(gpu.launch_store(p, kWords, 1, first));
  CU(cuEventRecord(event, first));
  while (until_done && cuEventQuery(event) == CUDA_ERROR_NOT_READY) {
  }
  CU(gpu.launch_add(p, kWords, 1, new_stream()));
  CU(cuCtxSynchronize());
}

TEST_P(Race, ASuccessfulQueryOrders) {
  EXPECT_CLEAN(run([] { polled(true); }));
  EXPECT_REPORT(run([] { polled(false); }), "a race at");
}

// The default stream is ordered against blocking streams, and against no others.
void default_stream(unsigned flags) {
  Gpu gpu;
  const CUdeviceptr p = allocate(4 * kWords);
  const CUstream other = new_stream(flags);
  CU(gpu.launch_store(p, kWords, 1, other));
  CU(gpu.launch_add(p, kWords, 1, nullptr));
  CU(gpu.launch_add(p, kWords, 1, other));
  CU(cuCtxSynchronize());
  if (flags == CU_STREAM_DEFAULT) {
    EXPECT_EQ(gpu.read(p, 1)[0], 3U);
  }
}

TEST_P(Race, TheDefaultStreamWaitsForBlockingStreams) {
  EXPECT_CLEAN(run([] { default_stream(CU_STREAM_DEFAULT); }));
  EXPECT_REPORT(run([] { default_stream(CU_STREAM_NON_BLOCKING); }), "a race at");
}

// One thread synchronises and tells the other, by means that the driver cannot see.
void told_by_another_thread() {
  Gpu gpu;
  const CUdeviceptr p = allocate(4 * kWords);
  const CUstream first = new_stream();
  CU(gpu.launch_store(p, kWords, 1, first));
  std::thread([&] {
    CU(cuCtxSetCurrent(gpu.context));
    CU(cuStreamSynchronize(first));
  }).join();
  CU(gpu.launch_add(p, kWords, 1, new_stream()));
  CU(cuCtxSynchronize());
}

TEST_P(Race, WhatOneThreadKnows) {
  EXPECT_CLEAN(run(told_by_another_thread));
  EXPECT_REPORT(in_child({{"SIMGPU_SCHEDULE", GetParam()}, {"SIMGPU_CHECK_THREADS", "own"}},
                         told_by_another_thread),
                "a race at");
}

// A synchronisation tells of what was submitted before it, not of what happens to be finished as
// well.
void synchronised_too_early(bool again) {
  Gpu gpu;
  const CUdeviceptr p = allocate(4 * kWords);
  const CUstream first = new_stream();
  Gate gate;
  gate.close(first);
  std::atomic<bool> called{false};
  std::thread waiter([&] {
    CU(cuCtxSetCurrent(gpu.context));
    called = true;
    CU(cuStreamSynchronize(first));
  });
  while (!called) {
  }
  const timespec pause{0, 200000000};
  nanosleep(&pause, nullptr);
  CU(gpu.launch_store(p, kWords, 1, first));
  gate.open();
  waiter.join();
  nanosleep(&pause, nullptr);
  if (again) {
    CU(cuStreamSynchronize(first));
  }
  CU(gpu.launch_add(p, kWords, 1, new_stream()));
  CU(cuCtxSynchronize());
}

TEST_P(Race, ASynchronisationIsAboutWhatWasThere) {
  EXPECT_REPORT(run([] { synchronised_too_early(false); }), "a race at");
  EXPECT_CLEAN(run([] { synchronised_too_early(true); }));
}

// The same for a synchronisation of everything, which is still blocked when more is submitted and
// done.
void context_synchronised_too_early(bool again) {
  Gpu gpu;
  const CUdeviceptr p = allocate(4 * kWords);
  const CUstream slow = new_stream();
  const CUstream fast = new_stream();
  const CUstream third = new_stream();
  Gate gate;
  gate.close(slow);
  CU(gpu.launch_store(p, kWords, 1, fast));
  std::atomic<bool> called{false};
  std::thread waiter([&] {
    CU(cuCtxSetCurrent(gpu.context));
    called = true;
    CU(cuCtxSynchronize());
    if (again) {
      CU(cuStreamSynchronize(fast));
    }
    CU(gpu.launch_add(p, kWords, 1, third));
  });
  while (!called) {
  }
  const timespec pause{0, 200000000};
  nanosleep(&pause, nullptr);
  CU(gpu.launch_store(p, kWords, 2, fast));
  CU(cuStreamSynchronize(fast));
  gate.open();
  waiter.join();
  CU(cuCtxSynchronize());
}

TEST_P(Race, AContextSynchronisationIsAboutWhatWasThere) {
  const Environment own = {{"SIMGPU_SCHEDULE", GetParam()}, {"SIMGPU_CHECK_THREADS", "own"}};
  EXPECT_REPORT(in_child(own, [] { context_synchronised_too_early(false); }), "a race at");
  EXPECT_CLEAN(in_child(own, [] { context_synchronised_too_early(true); }));
}

// A host function tells the program that what is before it is done.
TEST_P(Race, AHostFunctionTells) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(4 * kWords);
    const CUstream first = new_stream();
    static std::atomic<bool> told{false};
    CU(gpu.launch_store(p, kWords, 1, first));
    CU(cuLaunchHostFunc(
        first, [](void*) { told = true; }, nullptr));
    while (!told) {
    }
    CU(gpu.launch_add(p, kWords, 1, new_stream()));
    CU(cuCtxSynchronize());
  }));
}

void event_is_not_the_stream(bool synchronised) {
  Gpu gpu;
  const CUdeviceptr p = allocate(4 * kWords);
  const CUstream first = new_stream();
  const CUevent event = new_event();
  CU(cuEventRecord(event, first));
  CU(gpu.launch_store(p, kWords, 1, first));
  const timespec pause{0, 200000000};
  nanosleep(&pause, nullptr);
  CU(cuEventSynchronize(event));
  CU(cuEventQuery(event));
  if (synchronised) {
    CU(cuStreamSynchronize(first));
  }
  CU(gpu.launch_add(p, kWords, 1, new_stream()));
  CU(cuCtxSynchronize());
}

TEST_P(Race, AnEventIsAboutWhatIsBeforeIt) {
  EXPECT_REPORT(run([] { event_is_not_the_stream(false); }), "a race at");
  EXPECT_CLEAN(run([] { event_is_not_the_stream(true); }));
}

// Of unknown effect: the interpreter does not know warp operations.
constexpr const char* kMystery = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry mystery(.param .u64 p)
{
  .reg .u32 %r<3>;
  shfl.sync.down.b32 %r1, %r2, 1, 31, -1;
  ret;
}
)";

void two_mysteries(bool ordered) {
  Gpu gpu;
  CUmodule module = nullptr;
  CUfunction mystery = nullptr;
  CU(cuModuleLoadData(&module, kMystery));
  CU(cuModuleGetFunction(&mystery, module, "mystery"));
  CUdeviceptr p = allocate(4 * kWords);
  CUdeviceptr middle = p + 512;  // names the whole allocation
  const CUstream first = new_stream();
  const CUstream second = new_stream();
  void* arguments[] = {&middle};
  CU(cuLaunchKernel(mystery, 1, 1, 1, 32, 1, 1, 0, first, arguments, nullptr));
  if (ordered) {
    CU(cuStreamSynchronize(first));
  }
  CU(gpu.launch_add(p, 4, 1, second));
  CU(cuCtxSynchronize());
}

TEST_P(Race, UnknownKernelsCountByName) {
  EXPECT_REPORT(run([] { two_mysteries(false); }), "kernel mystery");
  const Outcome right = run([] { two_mysteries(true); });
  EXPECT_EQ(right.status, 0) << right.errors;  // with a line about the kernel
}

}  // namespace
}  // namespace simgpu::test
