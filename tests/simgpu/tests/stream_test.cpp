// SPDX-License-Identifier: Apache-2.0
// Streams and events.
#include <atomic>
#include <thread>

#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {
namespace {

constexpr uint32_t kWords = 64;

class Streams : public testing::TestWithParam<const char*> {
 protected:
  Outcome run(const std::function<void()>& body) {
    return in_child({{"SIMGPU_SCHEDULE", GetParam()}}, body);
  }
};

INSTANTIATE_TEST_SUITE_P(Schedules, Streams, testing::Values("fifo", "late", "random:7"));

// CUDA C++ Programming Guide, "Streams" and "Events": in order within one, unordered across, but
// for events.
TEST_P(Streams, OrderWithinAndAcross) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(4 * kWords);
    const CUstream a = new_stream();
    const CUstream b = new_stream();
    const CUevent event = new_event();
    CU(gpu.launch_store(p, kWords, 1, a));
    for (uint32_t i = 0; i < 50; ++i) {
      CUstream from = i % 2 == 0 ? a : b;
      CUstream to = i % 2 == 0 ? b : a;
      CU(cuEventRecord(event,
                       from));  // the same event again and again: each wait means the last record
      CU(cuStreamWaitEvent(to, event, 0));
      CU(gpu.launch_add(p, kWords, 1, to));
    }
    EXPECT_EQ(gpu.read(p, kWords)[kWords - 1], 51U);
  }));
}

// CUDA Driver API reference, "Event Management", cuEventQuery (an event that was never recorded
// is complete), cuEventElapsedTime (CUDA_ERROR_INVALID_HANDLE without timing,
// CUDA_ERROR_NOT_READY).
TEST_P(Streams, EventStates) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUstream stream = new_stream();
    const CUevent event = new_event(CU_EVENT_DEFAULT);
    CU(cuEventQuery(event));  // never recorded: complete
    CU(cuEventSynchronize(event));
    CU(cuStreamWaitEvent(stream, event, 0));
    float time = 0;
    EXPECT_EQ(cuEventElapsedTime(&time, event, event), CUDA_ERROR_INVALID_HANDLE);
    Gate gate;
    gate.close(stream);
    CU(cuEventRecord(event, stream));
    EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(cuEventElapsedTime(&time, event, event), CUDA_ERROR_NOT_READY);
    gate.open();
    CU(cuEventSynchronize(event));
    CU(cuEventQuery(event));
    const CUevent later = new_event(CU_EVENT_DEFAULT);
    const timespec pause{0, 3000000};
    nanosleep(&pause, nullptr);
    CU(cuEventRecord(later, stream));
    CU(cuEventSynchronize(later));
    CU(cuEventElapsedTime(&time, event, later));
    EXPECT_GT(time, 2.5F);
    EXPECT_LT(time, 1000.0F);
    const CUevent untimed = new_event(CU_EVENT_DISABLE_TIMING);
    CU(cuEventRecord(untimed, stream));
    CU(cuEventSynchronize(untimed));
    EXPECT_EQ(cuEventElapsedTime(&time, event, untimed), CUDA_ERROR_INVALID_HANDLE);
  }));
}

// CUDA Driver API reference, "Event Management", cuEventRecord: waits "are not affected by later
// calls to" it.
TEST_P(Streams, AWaitMeansTheRecordBeforeIt) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(4 * kWords);
    const CUstream a = new_stream();
    const CUstream b = new_stream();
    const CUstream blocked = new_stream();
    const CUevent event = new_event();
    Gate gate;
    CU(gpu.launch_store(p, kWords, 1, a));
    CU(cuEventRecord(event, a));
    CU(cuStreamWaitEvent(b, event, 0));
    gate.close(blocked);
    CU(cuEventRecord(event, blocked));  // later: does not concern b
    CU(gpu.launch_add(p, kWords, 1, b));
    CU(cuStreamSynchronize(b));
    EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    gate.open();
    CU(cuEventSynchronize(event));
  }));
}

// CUDA Driver API reference, cuStreamDestroy and cuEventDestroy: they "return immediately", and
// what is queued still runs.
TEST_P(Streams, HandlesMayGoWhileWorkIsPending) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(4 * kWords);
    const CUstream a = new_stream();
    const CUstream b = new_stream();
    const CUevent event = new_event();
    Gate gate;
    gate.close(a);
    CU(gpu.launch_store(p, kWords, 3, a));
    CU(cuEventRecord(event, a));
    CU(cuStreamWaitEvent(b, event, 0));
    CU(cuEventDestroy(event));
    EXPECT_EQ(cuEventDestroy(event), CUDA_ERROR_INVALID_HANDLE);
    CU(cuStreamDestroy(a));
    EXPECT_EQ(cuStreamSynchronize(a), CUDA_ERROR_INVALID_HANDLE);
    const CUstream again = new_stream();
    EXPECT_EQ(again, a);  // last in, first out; yet another stream
    CU(cuStreamSynchronize(again));
    unsigned long long id_a = 0;
    unsigned long long id_b = 0;
    CU(cuStreamGetId(again, &id_a));
    CU(cuStreamGetId(b, &id_b));
    EXPECT_NE(id_a, id_b);
    gate.open();
    CU(gpu.launch_add(p, kWords, 1, b));
    EXPECT_EQ(gpu.read(p, 1)[0], 4U);
  }));
}

// CUDA Driver API reference, "Execution Control", cuLaunchHostFunc: called "after currently
// enqueued work and will block work added after it".
TEST_P(Streams, HostFunctionsRunInStreamOrder) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    static std::atomic<int> calls{0};
    static uint32_t* seen = static_cast<uint32_t*>(allocate_pinned(4 * kWords));
    const CUdeviceptr p = allocate(4 * kWords);
    const CUstream stream = new_stream();
    CU(gpu.launch_store(p, kWords, 21, stream));
    CU(cuMemcpyDtoHAsync(seen, p, 4 * kWords, stream));
    CU(cuLaunchHostFunc(
        stream, [](void* data) { calls += seen[0] == 21 ? *static_cast<int*>(data) : 100; },
        new int(5)));
    CU(cuStreamAddCallback(
        stream, [](CUstream, CUresult status, void*) { calls += status == CUDA_SUCCESS ? 1 : 100; },
        nullptr, 0));
    CU(cuStreamSynchronize(stream));
    EXPECT_EQ(calls.load(), 6);
  }));
}

// CUDA Driver API reference, "Execution Control", cuLaunchHostFunc: "must not make any CUDA API
// calls", which "may result in CUDA_ERROR_NOT_PERMITTED".
TEST_P(Streams, HostFunctionsMayNotCallTheDriver) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    static std::atomic<CUresult> inside{CUDA_SUCCESS};
    const auto call = [](void*) {
      CUdeviceptr p = 0;
      inside = cuMemAlloc(&p, 4);
    };
    CU(cuLaunchHostFunc(nullptr, call, nullptr));
    CU(cuCtxSynchronize());
    EXPECT_EQ(inside.load(), CUDA_ERROR_NOT_PERMITTED);
  }));
}

// CUDA Driver API reference, CUresult, CUDA_ERROR_ILLEGAL_ADDRESS (700): "leaves the process in
// an inconsistent state and any further CUDA work will return the same error".
TEST_P(Streams, ALostContextDoesNotHang) {
  const Outcome outcome = run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(4 * kWords);
    const CUstream stream = new_stream();
    const CUstream waiter = new_stream();
    const CUevent event = new_event();
    Gate gate;
    gate.close(waiter);  // never opened
    CU(cuEventRecord(event, waiter));
    CU(cuStreamWaitEvent(stream, event, 0));
    const CUstream other = new_stream();
    CU(gpu.launch_add(p + (1 << 30), kWords, 1, other));
    EXPECT_EQ(cuStreamSynchronize(other), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cuStreamDestroy(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  });
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

// The same: what is queued behind the fault is not done.
TEST_P(Streams, ALostContextDoesNothingMore) {
  const Outcome outcome = run([] {
    Gpu gpu;
    auto* seen = static_cast<uint32_t*>(allocate_pinned(4 * kWords));
    seen[0] = 5;
    const CUstream stream = new_stream();
    Gate gate;
    gate.close(stream);
    CU(gpu.launch_add(CUdeviceptr{1} << 32, kWords, 1, stream));
    CU(gpu.launch_store(reinterpret_cast<CUdeviceptr>(seen), kWords, 9, stream));
    gate.open();
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(seen[0], 5U);
  });
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

// CUDA Driver API reference, "Stream Memory Operations", cuStreamWriteValue32,
// cuStreamWaitValue32 (GEQ is by the sign of the difference), cuStreamWriteValue64,
// cuStreamWaitValue64.
TEST_P(Streams, ValuesInMemory) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr flag = allocate(8);
    CU(cuMemsetD32(flag, 0, 2));
    CU(cuCtxSynchronize());
    const CUdeviceptr p = allocate(4 * kWords);
    const CUstream writer = new_stream();
    const CUstream waiter = new_stream();
    CU(cuStreamWaitValue64(waiter, flag, 3, CU_STREAM_WAIT_VALUE_GEQ));
    CU(gpu.launch_add(p, kWords, 1, waiter));
    CU(gpu.launch_store(p, kWords, 1, writer));
    CU(cuStreamWriteValue64(writer, flag, 4, 0));
    CU(cuStreamSynchronize(waiter));
    EXPECT_EQ(gpu.read(p, 1)[0], 2U);
    EXPECT_EQ(cuStreamWaitValue32(waiter, flag + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
  }));
}

// CUDA Driver API reference, "Stream Memory Operations", cuStreamWaitValue32: the value may come
// from anywhere.
TEST_P(Streams, AValueThatAKernelWrites) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr flag = allocate(8);
    CU(cuMemsetD32(flag, 0, 2));
    CU(cuCtxSynchronize());
    const CUdeviceptr p = allocate(4 * kWords);
    const CUstream writer = new_stream();
    const CUstream waiter = new_stream();
    CU(cuStreamWaitValue32(waiter, flag, 9, CU_STREAM_WAIT_VALUE_EQ));
    CU(gpu.launch_add(p, kWords, 1, waiter));
    CU(gpu.launch_store(p, kWords, 1, writer));
    CU(gpu.launch_store(flag, 1, 9, writer));
    EXPECT_EQ(gpu.read(p, 1)[0], 2U);
  }));
}

// CUDA Driver API reference, "Stream synchronization behavior": the per-thread default stream is
// the thread's own, and synchronises with the legacy one as blocking streams do.
TEST_P(Streams, PerThreadDefaultStream) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    CUcontext context = nullptr;
    CU(cuCtxGetCurrent(&context));
    unsigned long long mine = 0;
    unsigned long long legacy = 0;
    unsigned long long theirs = 0;
    CU(cuStreamGetId(CU_STREAM_PER_THREAD, &mine));
    CU(cuStreamGetId(nullptr, &legacy));
    EXPECT_NE(mine, legacy);
    unsigned long long one = 0;
    CU(cuStreamGetId(CU_STREAM_LEGACY, &one));
    EXPECT_EQ(one, legacy);
    std::thread([&] {
      CU(cuCtxSetCurrent(context));
      CU(cuStreamGetId(CU_STREAM_PER_THREAD, &theirs));
    }).join();
    EXPECT_NE(theirs, mine);
    // It is ordered against the legacy stream.
    const CUdeviceptr p = allocate(4 * kWords);
    CU(gpu.launch_store(p, kWords, 1, CU_STREAM_PER_THREAD));
    CU(gpu.launch_add(p, kWords, 1, nullptr));
    CU(gpu.launch_add(p, kWords, 1, CU_STREAM_PER_THREAD));
    EXPECT_EQ(gpu.read(p, 1)[0], 3U);
  }));
}

// CUDA Driver API reference, "Stream synchronization behavior", legacy default stream.
TEST_P(Streams, SynchronisingTheDefaultStreamWaitsForBlockingStreams) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUstream blocking = new_stream(CU_STREAM_DEFAULT);
    const CUstream free = new_stream(CU_STREAM_NON_BLOCKING);
    Gate first;
    Gate second;
    first.close(blocking);
    second.close(free);
    EXPECT_EQ(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
    first.open();
    CU(cuStreamSynchronize(nullptr));
    EXPECT_EQ(cuStreamQuery(free), CUDA_ERROR_NOT_READY);
    second.open();
  }));
}

// CUDA Driver API reference, "Stream Management", cuStreamCreateWithPriority (clamped to the
// range), cuStreamGetFlags, cuStreamGetPriority, cuThreadExchangeStreamCaptureMode.
TEST(StreamRules, Attributes) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    int least = 9;
    int greatest = 9;
    CU(cuCtxGetStreamPriorityRange(&least, &greatest));
    EXPECT_LT(greatest, least);
    CUstream stream = nullptr;
    CU(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -100));
    int priority = 9;
    unsigned flags = 9;
    CU(cuStreamGetPriority(stream, &priority));
    CU(cuStreamGetFlags(stream, &flags));
    EXPECT_EQ(priority, greatest);
    EXPECT_EQ(flags, static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
    CUcontext context = nullptr;
    CU(cuStreamGetCtx(stream, &context));
    EXPECT_EQ(context, gpu.context);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    CU(cuStreamIsCapturing(stream, &status));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
    EXPECT_EQ(cuStreamCreate(&stream, 8), CUDA_ERROR_INVALID_VALUE);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CU(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    CU(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
  }));
}

// CUDA Driver API reference, "Event Management", cuEventRecord: "must be from the same context";
// cuStreamWaitEvent: "may be from a different context or device".
TEST(StreamRules, EventAndStreamOfDifferentContexts) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUevent event = new_event();
    CUcontext other = nullptr;
    CU(cuCtxCreate(&other, nullptr, 0, 0));
    const CUstream stream = new_stream();
    EXPECT_EQ(cuEventRecord(event, stream), CUDA_ERROR_INVALID_HANDLE);
    CU(cuStreamWaitEvent(stream, event, 0));  // waiting across contexts is allowed
  }));
}

// CUDA C++ Programming Guide, "Asynchronous Concurrent Execution"; the depth is what profilers
// show and no manual says.
TEST(StreamRules, AFullQueueBlocks) {
  EXPECT_CLEAN(in_child({{"SIMGPU_QUEUE_DEPTH", "8"}}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(4);
    CU(cuMemsetD32(p, 0, 1));
    CU(cuCtxSynchronize());
    const CUstream stream = new_stream();
    Gate gate;
    gate.close(stream);
    std::atomic<int> submitted{0};
    std::thread other([&] {
      CU(cuCtxSetCurrent(gpu.context));
      for (int i = 0; i < 20; ++i) {
        CU(gpu.launch_add(p, 1, 1, stream));
        ++submitted;
      }
    });
    const timespec pause{0, 100000000};
    nanosleep(&pause, nullptr);
    EXPECT_EQ(submitted.load(), 7);  // and the gate
    gate.open();
    other.join();
    CU(cuStreamSynchronize(stream));
    EXPECT_EQ(gpu.read(p, 1)[0], 20U);
  }));
}

TEST(StreamRules, TheWatchdogSaysWhatHangs) {
  const Outcome outcome = in_child({{"SIMGPU_WATCHDOG", "1"}}, [] {
    Gpu gpu;
    const CUstream a = new_stream();
    const CUstream b = new_stream();
    const CUevent event = new_event();
    Gate gate;
    gate.close(a);
    CU(cuEventRecord(event, a));
    CU(cuStreamWaitEvent(b, event, 0));
    cuStreamSynchronize(b);
  });
  EXPECT_EQ(outcome.signal, SIGABRT);
  EXPECT_TRUE(outcome.says("no operation has finished for 1 s while cuStreamSynchronize waits"));
  EXPECT_TRUE(outcome.says("wait for a value in memory")) << outcome.errors;
  EXPECT_TRUE(outcome.says("wait for an event, which waits for operation 2 of stream"))
      << outcome.errors;
}

TEST(StreamRules, ThousandsOfStreams) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(4);
    CU(cuMemsetD32(p, 0, 1));
    for (int i = 0; i < 3000; ++i) {
      const CUstream stream = new_stream(CU_STREAM_DEFAULT);
      CU(gpu.launch_add(p, 1, 1, stream));
      CU(cuStreamSynchronize(stream));
      CU(cuStreamDestroy(stream));
    }
    EXPECT_EQ(gpu.read(p, 1)[0], 3000U);
  }));
}

}  // namespace
}  // namespace simgpu::test
