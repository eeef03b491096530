// SPDX-License-Identifier: Apache-2.0
// Stream capture. What is refused and with which code: cuda.h at the entries named, and the CUDA
// C++ Programming Guide, "Stream Capture" with its "Prohibited and Unhandled Operations".
#include <atomic>
#include <thread>

#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {
namespace {

constexpr uint32_t kWords = 64;

class Capture : public testing::TestWithParam<const char*> {
 protected:
  Outcome run(const std::function<void()>& body) {
    return in_child({{"SIMGPU_SCHEDULE", GetParam()}}, body);
  }
};

INSTANTIATE_TEST_SUITE_P(Schedules, Capture, testing::Values("fifo", "late", "random:3"));

CUstreamCaptureStatus status_of(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  EXPECT_EQ(cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
  return status;
}

CUgraphExec instantiate(CUgraph graph) {
  CUgraphExec exec = nullptr;
  EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  return exec;
}

size_t count_nodes(CUgraph graph) {
  size_t count = 0;
  EXPECT_EQ(cuGraphGetNodes(graph, nullptr, &count), CUDA_SUCCESS);
  return count;
}

TEST_P(Capture, NothingRunsBeforeTheLaunch) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(4 * kWords);
    const CUstream stream = new_stream();
    CU(gpu.launch_store(p, kWords, 1, stream));
    CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_EQ(status_of(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CU(gpu.launch_add(p, kWords, 1, stream));
    CU(gpu.launch_add(p, kWords, 10, stream));
    CUgraph graph = nullptr;
    CU(cuStreamEndCapture(stream, &graph));
    EXPECT_EQ(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
    EXPECT_EQ(count_nodes(graph), 2U);
    EXPECT_EQ(gpu.read(p, 1)[0], 1U);
    const CUgraphExec exec = instantiate(graph);
    CU(cuGraphDestroy(graph));  // the instance is a copy
    for (int i = 0; i < 3; ++i) CU(cuGraphLaunch(exec, stream));
    EXPECT_EQ(gpu.read(p, kWords)[kWords - 1], 34U);
    CU(cuGraphLaunch(exec, stream));
    CU(cuGraphExecDestroy(exec));  // what is launched still runs
    EXPECT_EQ(gpu.read(p, 1)[0], 45U);
  }));
}

TEST_P(Capture, TakesCopiesFillsFunctionsAndValues) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    static std::atomic<uint32_t> seen{0};
    const CUdeviceptr p = allocate(4 * kWords);
    const CUdeviceptr q = allocate(4 * kWords);
    auto* host = static_cast<uint32_t*>(allocate_pinned(4 * kWords));
    std::vector<uint32_t> pageable(kWords, 5);
    const CUstream stream = new_stream();
    CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(cuMemcpyHtoDAsync(p, pageable.data(), 4 * kWords, stream));
    CU(cuMemsetD32Async(p, 7, 2, stream));
    CU(cuMemcpyDtoDAsync(q, p, 4 * kWords, stream));
    CU(gpu.launch_add(q, kWords, 1, stream));
    CU(cuMemcpyDtoHAsync(host, q, 4 * kWords, stream));
    CU(cuLaunchHostFunc(
        stream, [](void* data) { seen += static_cast<uint32_t*>(data)[0]; }, host));
    CU(cuStreamWriteValue32(stream, q, 99, 0));
    CUgraph graph = nullptr;
    CU(cuStreamEndCapture(stream, &graph));
    EXPECT_EQ(count_nodes(graph), 7U);
    const CUgraphExec exec = instantiate(graph);
    pageable.assign(kWords, 6);  // a graph reads it when it runs
    CU(cuGraphLaunch(exec, stream));
    CU(cuStreamSynchronize(stream));
    EXPECT_EQ(host[0], 8U);
    EXPECT_EQ(host[2], 7U);
    EXPECT_EQ(seen.load(), 8U);
    EXPECT_EQ(gpu.read(q, 1)[0], 99U);
  }));
}

TEST_P(Capture, EventsForkAndJoin) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(4 * kWords);
    const CUdeviceptr q = allocate(4 * kWords);
    const CUstream a = new_stream();
    const CUstream b = new_stream();
    const CUevent fork = new_event();
    const CUevent join = new_event();
    CU(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(gpu.launch_store(p, kWords, 1, a));
    CU(cuEventRecord(fork, a));
    CU(cuStreamWaitEvent(b, fork, 0));
    EXPECT_EQ(status_of(b), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CU(gpu.launch_copy(q, p, kWords, b));
    CU(gpu.launch_add(p, kWords, 1, a));  // races with the copy: only the graph's edges order
    CU(cuEventRecord(join, b));
    EXPECT_EQ(cuStreamEndCapture(b, nullptr), CUDA_ERROR_INVALID_VALUE);
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(b, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    CU(cuStreamWaitEvent(a, join, 0));
    CU(gpu.launch_add(q, kWords, 1, a));
    CU(cuStreamEndCapture(a, &graph));
    EXPECT_EQ(status_of(b), CU_STREAM_CAPTURE_STATUS_NONE);
    size_t edges = 0;
    CU(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
    EXPECT_EQ(edges, 4U);  // store-copy, store-add, copy-add, add-add
  }));
}

TEST_P(Capture, TheCheckerKnowsTheGraphsEdges) {
  const auto body = [](bool joined) {
    Gpu gpu;
    const CUdeviceptr p = allocate(4 * kWords);
    const CUdeviceptr q = allocate(4 * kWords);
    const CUstream a = new_stream();
    const CUstream b = new_stream();
    const CUevent fork = new_event();
    const CUevent join = new_event();
    CU(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(gpu.launch_store(p, kWords, 1, a));
    CU(cuEventRecord(fork, a));
    CU(cuStreamWaitEvent(b, fork, 0));
    CU(gpu.launch_copy(q, p, kWords, b));
    CU(cuEventRecord(join, b));
    if (joined) {
      CU(cuStreamWaitEvent(a, join, 0));
    }
    CU(gpu.launch_store(p, kWords, 2, a));
    if (!joined) {
      CU(cuStreamWaitEvent(a, join, 0));
    }
    CUgraph graph = nullptr;
    CU(cuStreamEndCapture(a, &graph));
    const CUgraphExec exec = instantiate(graph);
    CU(cuGraphLaunch(exec, a));
    CU(cuGraphLaunch(exec, b));  // one launch of an instance comes after the other
    CU(cuCtxSynchronize());
    EXPECT_EQ(gpu.read(p, 1)[0], 2U);
  };
  EXPECT_CLEAN(run([&] { body(true); }));
  EXPECT_REPORT(run([&] { body(false); }), "nothing orders one after the other");
}

TEST_P(Capture, ForksMustBeJoined) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(4 * kWords);
    const CUstream a = new_stream();
    const CUstream b = new_stream();
    const CUevent fork = new_event();
    CU(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(gpu.launch_store(p, kWords, 1, a));
    CU(cuEventRecord(fork, a));
    CU(cuStreamWaitEvent(b, fork, 0));
    CU(gpu.launch_add(p, kWords, 1, b));
    auto graph = reinterpret_cast<CUgraph>(&gpu);
    EXPECT_EQ(cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(status_of(b), CU_STREAM_CAPTURE_STATUS_NONE);  // out of capture all the same
    CU(gpu.launch_store(p, kWords, 3, b));
    EXPECT_EQ(gpu.read(p, 1)[0], 3U);
  }));
}

// Every call spoils the capture, whose end then says so.
void expect_spoiled(CUstream stream) {
  EXPECT_EQ(status_of(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  const CUevent event = new_event();
  EXPECT_EQ(cuEventRecord(event, stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_P(Capture, WaitingForWhatIsCapturedSpoilsIt) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUstream stream = new_stream();
    const CUevent event = new_event();
    const std::function<void()> attempts[] = {
        [&] { EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); },
        [&] { EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); },
        [&] { EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); },
        [&] { EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT); },
        [&] { EXPECT_EQ(cuEventSynchronize(event), CUDA_ERROR_CAPTURED_EVENT); },
        [&] {
          EXPECT_EQ(cuStreamAddCallback(
                        stream, [](CUstream, CUresult, void*) {}, nullptr, 0),
                    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        }};
    // Even where unsafe calls are allowed.
    for (const auto& attempt : attempts) {
      CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
      CU(cuEventRecord(event, stream));
      attempt();
      expect_spoiled(stream);
    }
    EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);  // until it is recorded again
    CU(cuEventRecord(event, stream));
    CU(cuEventSynchronize(event));
  }));
}

TEST_P(Capture, NoDependencyCrossesItsBorder) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUstream a = new_stream();
    const CUstream b = new_stream();
    const CUevent outside = new_event();
    const CUevent inside = new_event();
    CU(cuEventRecord(outside, b));
    CU(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_EQ(cuStreamWaitEvent(a, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    expect_spoiled(a);
    // Two captures do not merge.
    CU(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(cuStreamBeginCapture(b, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(cuEventRecord(inside, b));
    EXPECT_EQ(cuStreamWaitEvent(a, inside, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    expect_spoiled(a);
    expect_spoiled(b);
    EXPECT_EQ(cuStreamBeginCapture(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL),
              CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(a, &graph), CUDA_ERROR_ILLEGAL_STATE);
    CU(cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_EQ(cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_GLOBAL),
              CUDA_ERROR_ILLEGAL_STATE);
    CU(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph));
  }));
}

TEST_P(Capture, TheDefaultStreamMeetsBlockingStreams) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(4 * kWords);
    const CUstream blocking = new_stream(CU_STREAM_DEFAULT);
    CU(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    CUstreamCaptureStatus status{};
    EXPECT_EQ(cuStreamIsCapturing(nullptr, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    EXPECT_EQ(status_of(blocking), CU_STREAM_CAPTURE_STATUS_ACTIVE);  // asking does no harm
    EXPECT_EQ(gpu.launch_store(p, kWords, 1, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    expect_spoiled(blocking);
    CU(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_EQ(cuMemcpyDtoD(p, p, 4), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    expect_spoiled(blocking);
    const CUstream free = new_stream();
    CU(cuStreamBeginCapture(free, CU_STREAM_CAPTURE_MODE_RELAXED));
    CU(cuStreamIsCapturing(nullptr, &status));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
    CU(gpu.launch_store(p, kWords, 1, nullptr));
    CUgraph graph = nullptr;
    CU(cuStreamEndCapture(free, &graph));
    EXPECT_EQ(count_nodes(graph), 0U);
  }));
}

struct Attempt {
  CUstreamCaptureMode begun;
  CUstreamCaptureMode mine;  // of the thread that calls
  bool other_thread;
  bool allowed;
};

TEST_P(Capture, UnsafeCallsByModeAndThread) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    constexpr auto kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;
    constexpr auto kLocal = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    constexpr auto kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    const Attempt attempts[] = {
        {kGlobal, kGlobal, false, false},  {kGlobal, kGlobal, true, false},
        {kGlobal, kLocal, false, false},   {kGlobal, kLocal, true, true},
        {kGlobal, kRelaxed, false, true},  {kGlobal, kRelaxed, true, true},
        {kLocal, kGlobal, false, false},   {kLocal, kGlobal, true, true},
        {kRelaxed, kGlobal, false, true},  {kRelaxed, kGlobal, true, true},
        {kRelaxed, kRelaxed, false, true},
    };
    const CUstream stream = new_stream();
    const CUevent event = new_event();
    CU(cuEventRecord(event, stream));
    CU(cuEventSynchronize(event));
    void* pinned = allocate_pinned(64);
    for (const Attempt& attempt : attempts) {
      SCOPED_TRACE(&attempt - attempts);
      const std::function<CUresult()> calls[] = {
          [&] {
            CUdeviceptr address = 0;
            return cuMemAlloc(&address, 64);
          },
          [&] { return cuEventQuery(event); },
          [&] {
            void* more = nullptr;
            return cuMemHostAlloc(&more, 64, 0);
          },
          [&] {
            CUdeviceptr address = 0;
            return cuMemAddressReserve(&address, 2 << 20, 0, 0, 0);
          },
      };
      for (const auto& call : calls) {
        CU(cuStreamBeginCapture(stream, attempt.begun));
        CUresult result = CUDA_SUCCESS;
        const auto body = [&] {
          cuCtxSetCurrent(gpu.context);
          CUstreamCaptureMode mode = attempt.mine;
          cuThreadExchangeStreamCaptureMode(&mode);
          result = call();
          cuThreadExchangeStreamCaptureMode(&mode);
        };
        if (attempt.other_thread) {
          std::thread(body).join();
        } else {
          body();
        }
        EXPECT_EQ(result, attempt.allowed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        CUgraph graph = nullptr;
        EXPECT_EQ(cuStreamEndCapture(stream, &graph),
                  attempt.allowed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        if (graph != nullptr) {
          CU(cuGraphDestroy(graph));
        }
      }
    }
    CU(cuMemFreeHost(pinned));
  }));
}

TEST_P(Capture, EndsInItsThread) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUstream stream = new_stream();
    const auto end_elsewhere = [&] {
      CUresult result = CUDA_SUCCESS;
      std::thread([&] {
        cuCtxSetCurrent(gpu.context);
        CUgraph graph = nullptr;
        result = cuStreamEndCapture(stream, &graph);
      }).join();
      return result;
    };
    CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    EXPECT_EQ(end_elsewhere(), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    CUgraph graph = nullptr;
    CU(cuStreamEndCapture(stream, &graph));
    CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_EQ(end_elsewhere(), CUDA_SUCCESS);
  }));
}

TEST_P(Capture, InfoAndDependencies) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(4 * kWords);
    const CUstream stream = new_stream();
    CUgraph into = nullptr;
    CU(cuGraphCreate(&into, 0));
    CUgraphNode root = nullptr;
    CU(cuGraphAddEmptyNode(&root, into, nullptr, 0));
    CU(cuStreamBeginCaptureToGraph(stream, into, &root, nullptr, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(gpu.launch_store(p, kWords, 1, stream));
    CUstreamCaptureStatus status{};
    cuuint64_t id = 0;
    CUgraph graph = nullptr;
    const CUgraphNode* tail = nullptr;
    size_t count = 0;
    CU(cuStreamGetCaptureInfo(stream, &status, &id, &graph, &tail, nullptr, &count));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_NE(id, 0U);
    EXPECT_EQ(graph, into);
    ASSERT_EQ(count, 1U);
    CUgraphNode kernel = tail[0];
    CUgraphNodeType type{};
    CU(cuGraphNodeGetType(kernel, &type));
    EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_KERNEL);
    CUgraphNode before = nullptr;
    size_t room = 1;
    CU(cuGraphNodeGetDependencies(kernel, &before, nullptr, &room));
    EXPECT_EQ(before, root);
    CU(cuStreamUpdateCaptureDependencies(stream, &root, nullptr, 1,
                                         CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    CU(gpu.launch_add(p, kWords, 1, stream));  // beside the store: only its info is looked at
    CU(cuStreamUpdateCaptureDependencies(stream, &kernel, nullptr, 1,
                                         CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    CU(cuStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &tail, nullptr, &count));
    EXPECT_EQ(count, 2U);
    EXPECT_EQ(cuGraphDestroy(into), CUDA_ERROR_INVALID_VALUE);
    CU(cuStreamEndCapture(stream, &graph));
    EXPECT_EQ(graph, into);
    EXPECT_EQ(count_nodes(graph), 3U);
    EXPECT_EQ(cuStreamUpdateCaptureDependencies(stream, &root, nullptr, 1, 0),
              CUDA_ERROR_ILLEGAL_STATE);
    CU(cuGraphDestroy(into));
  }));
}

TEST_P(Capture, ExternalEventsBecomeNodes) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(4 * kWords);
    const CUstream a = new_stream();
    const CUstream b = new_stream();
    const CUevent before = new_event();
    const CUevent after = new_event();
    EXPECT_EQ(cuEventRecordWithFlags(after, a, CU_EVENT_RECORD_EXTERNAL),
              CUDA_ERROR_INVALID_VALUE);  // outside of a capture
    EXPECT_EQ(cuStreamWaitEvent(a, before, CU_EVENT_WAIT_EXTERNAL), CUDA_ERROR_INVALID_VALUE);
    CU(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(cuStreamWaitEvent(a, before, CU_EVENT_WAIT_EXTERNAL));
    CU(gpu.launch_add(p, kWords, 1, a));
    CU(cuEventRecordWithFlags(after, a, CU_EVENT_RECORD_EXTERNAL));
    CUgraph graph = nullptr;
    CU(cuStreamEndCapture(a, &graph));
    const CUgraphExec exec = instantiate(graph);
    CU(gpu.launch_store(p, kWords, 5, b));
    CU(cuEventRecord(before, b));
    CU(cuGraphLaunch(exec, a));
    CU(cuStreamWaitEvent(b, after, 0));
    CU(gpu.launch_add(p, kWords, 1, b));
    EXPECT_EQ(gpu.read(p, 1)[0], 7U);
  }));
}

TEST_P(Capture, ALostStreamEndsIt) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUstream a = new_stream();
    const CUstream b = new_stream();
    const CUevent fork = new_event();
    CU(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(cuEventRecord(fork, a));
    CU(cuStreamWaitEvent(b, fork, 0));
    CU(cuStreamDestroy(a));
    EXPECT_EQ(status_of(b), CU_STREAM_CAPTURE_STATUS_NONE);
    CU(cuStreamSynchronize(b));
    allocate(64);  // nothing captures any more
  }));
}

}  // namespace
}  // namespace simgpu::test
