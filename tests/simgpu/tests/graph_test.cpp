// SPDX-License-Identifier: Apache-2.0
// Graphs built node by node, and instances of them (cuda.h, "Graph Management").
#include <atomic>
#include <ctime>

#include "tests/simgpu/tests/support/graphs.h"

namespace simgpu::test {
namespace {

constexpr uint32_t kWords = kGraphWords;
constexpr size_t kBytes = kGraphBytes;

class Graphs : public testing::TestWithParam<const char*> {
 protected:
  Outcome run(const std::function<void()>& body, const char* memory = "256MiB") {
    return in_child({{"SIMGPU_SCHEDULE", GetParam()}, {"SIMGPU_MEMORY", memory}}, body);
  }
};

INSTANTIATE_TEST_SUITE_P(Schedules, Graphs, testing::Values("fifo", "late", "random:11"));

TEST_P(Graphs, ADiamond) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    const CUdeviceptr q = allocate(kBytes);
    const CUgraph graph = new_graph();
    const CUgraphNode top = WordsKernel(gpu.store, p, 1).add_to(graph);
    const CUDA_MEMCPY3D what = copy_of(q, p);
    CUgraphNode left = nullptr;
    CU(cuGraphAddMemcpyNode(&left, graph, &top, 1, &what, gpu.context));
    CUgraphNode right = nullptr;
    CU(cuGraphAddEmptyNode(&right, graph, &top, 1));
    const CUgraphNode bottom = WordsKernel(gpu.add, q, 5).add_to(graph, {left, right});
    size_t count = 0;
    CU(cuGraphGetRootNodes(graph, nullptr, &count));
    EXPECT_EQ(count, 1U);
    CUgraphNode from[8];
    CUgraphNode to[8];
    size_t edges = 8;
    CU(cuGraphGetEdges(graph, from, to, nullptr, &edges));
    EXPECT_EQ(edges, 4U);
    EXPECT_EQ(from[4], nullptr);
    size_t dependents = 0;
    CU(cuGraphNodeGetDependentNodes(top, nullptr, nullptr, &dependents));
    EXPECT_EQ(dependents, 2U);
    const CUstream stream = new_stream();
    CU(cuGraphLaunch(instantiate(graph), stream));
    EXPECT_EQ(gpu.read(q, kWords)[3], 6U);
    CU(cuGraphDestroyNode(bottom));
    EXPECT_EQ(cuGraphDestroyNode(bottom), CUDA_ERROR_INVALID_VALUE);
    CU(cuGraphLaunch(instantiate(graph), stream));
    EXPECT_EQ(gpu.read(q, 1)[0], 1U);
  }));
}

TEST_P(Graphs, BranchesOverlapAndJoinTheirStream) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    const CUdeviceptr q = allocate(kBytes);
    auto* flag = static_cast<volatile uint32_t*>(allocate_pinned(4));
    *flag = 0;
    const CUgraph graph = new_graph();
    // One branch waits for what the other writes: possible only if both are under way.
    CUstreamBatchMemOpParams wait = {};
    wait.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    wait.waitValue.address = reinterpret_cast<CUdeviceptr>(flag);
    wait.waitValue.value = 1;
    wait.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    CUstreamBatchMemOpParams write = {};
    write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    write.writeValue.address = wait.waitValue.address;
    write.writeValue.value = 1;
    CUDA_BATCH_MEM_OP_NODE_PARAMS waits = {gpu.context, 1, &wait, 0};
    CUDA_BATCH_MEM_OP_NODE_PARAMS writes = {gpu.context, 1, &write, 0};
    CUgraphNode a = nullptr;
    CUgraphNode b = nullptr;
    CU(cuGraphAddBatchMemOpNode(&a, graph, nullptr, 0, &waits));
    CU(cuGraphAddBatchMemOpNode(&b, graph, nullptr, 0, &writes));
    WordsKernel(gpu.store, p, 3).add_to(graph, {a});
    WordsKernel(gpu.store, q, 4).add_to(graph, {b});
    const CUstream stream = new_stream();
    CU(gpu.launch_store(p, kWords, 100, stream));
    CU(cuGraphLaunch(instantiate(graph), stream));
    CU(gpu.launch_add(p, kWords, 1, stream));  // after the whole graph
    CU(gpu.launch_add(q, kWords, 1, stream));
    EXPECT_EQ(gpu.read(p, 1)[0], 4U);
    EXPECT_EQ(gpu.read(q, 1)[0], 5U);
  }));
}

TEST_P(Graphs, EdgesAndCycles) {
  const Outcome outcome = run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    const CUgraph graph = new_graph();
    const CUgraphNode a = WordsKernel(gpu.store, p, 1).add_to(graph);
    const CUgraphNode b = WordsKernel(gpu.add, p, 1).add_to(graph);
    CU(cuGraphAddDependencies(graph, &a, &b, nullptr, 1));
    EXPECT_EQ(cuGraphAddDependencies(graph, &a, &b, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
    CU(cuGraphLaunch(instantiate(graph), new_stream()));
    EXPECT_EQ(gpu.read(p, 1)[0], 2U);
    CU(cuGraphAddDependencies(graph, &b, &a, nullptr, 1));
    CUgraphExec exec = nullptr;
    EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {};
    EXPECT_EQ(cuGraphInstantiateWithParams(&exec, graph, &params), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(params.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
    CU(cuGraphRemoveDependencies(graph, &b, &a, nullptr, 1));
    CU(cuGraphInstantiateWithParams(&exec, graph, &params));
    EXPECT_EQ(params.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
    const CUgraph other = new_graph();
    CUgraphNode bad = nullptr;
    EXPECT_EQ(cuGraphAddEmptyNode(&bad, other, &a, 1), CUDA_ERROR_INVALID_VALUE);
    CUgraphConditionalHandle condition = 0;
    EXPECT_EQ(cuGraphConditionalHandleCreate(&condition, graph, gpu.context, 0, 0),
              CUDA_ERROR_NOT_SUPPORTED);
  });
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_EQ(outcome.errors, "simgpu: cuGraphConditionalHandleCreate is not modelled\n");
}

TEST_P(Graphs, ParametersCanBeAskedAndSet) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    const CUdeviceptr q = allocate(kBytes);
    const CUgraph graph = new_graph();
    const CUgraphNode kernel = WordsKernel(gpu.store, p, 1).add_to(graph);
    CUDA_KERNEL_NODE_PARAMS asked = {};
    CU(cuGraphKernelNodeGetParams(kernel, &asked));
    EXPECT_EQ(asked.func, gpu.store);
    EXPECT_EQ(asked.blockDimX, kWords);
    EXPECT_EQ(*static_cast<CUdeviceptr*>(asked.kernelParams[0]), p);
    EXPECT_EQ(*static_cast<uint32_t*>(asked.kernelParams[2]), 1U);
    CUDA_MEMSET_NODE_PARAMS fill = {q, 0, 0xab, 1, kBytes, 1};
    CUgraphNode memset = nullptr;
    CU(cuGraphAddMemsetNode(&memset, graph, nullptr, 0, &fill, gpu.context));
    const CUgraphExec exec = instantiate(graph);
    const WordsKernel changed(gpu.store, p, 9);
    CU(cuGraphExecKernelNodeSetParams(exec, kernel, &changed.params));
    fill.value = 0xcd;
    CU(cuGraphExecMemsetNodeSetParams(exec, memset, &fill, gpu.context));
    EXPECT_EQ(cuGraphExecKernelNodeSetParams(exec, memset, &changed.params),
              CUDA_ERROR_INVALID_VALUE);
    CU(cuGraphLaunch(exec, new_stream()));
    EXPECT_EQ(gpu.read(p, 1)[0], 9U);
    EXPECT_EQ(gpu.read(q, 1)[0], 0xcdcdcdcdU);
    CU(cuGraphKernelNodeGetParams(kernel, &asked));  // the graph's own are as they were
    EXPECT_EQ(*static_cast<uint32_t*>(asked.kernelParams[2]), 1U);
    CU(cuGraphMemsetNodeGetParams(memset, &fill));
    EXPECT_EQ(fill.value, 0xabU);
    unsigned enabled = 9;
    CU(cuGraphNodeSetEnabled(exec, kernel, 0));
    CU(cuGraphNodeGetEnabled(exec, kernel, &enabled));
    EXPECT_EQ(enabled, 0U);
    CU(gpu.launch_store(p, kWords, 20, nullptr));
    CU(cuGraphLaunch(exec, nullptr));
    EXPECT_EQ(gpu.read(p, 1)[0], 20U);
  }));
}

TEST_P(Graphs, UpdateTakesAGraphOfTheSameShape) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    const CUdeviceptr q = allocate(kBytes);
    const auto build = [&](uint32_t value, bool fill) {
      const CUgraph graph = new_graph();
      const CUgraphNode first = WordsKernel(gpu.store, p, value).add_to(graph);
      if (fill) {
        const CUDA_MEMSET_NODE_PARAMS what = {q, 0, 1, 1, kBytes, 1};
        CUgraphNode node = nullptr;
        EXPECT_EQ(cuGraphAddMemsetNode(&node, graph, &first, 1, &what, gpu.context), CUDA_SUCCESS);
      } else {
        WordsKernel(gpu.add, p, value).add_to(graph, {first});
      }
      return graph;
    };
    const CUgraphExec exec = instantiate(build(1, false));
    CUgraphExecUpdateResultInfo info = {};
    CU(cuGraphExecUpdate(exec, build(3, false), &info));
    EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    CU(cuGraphLaunch(exec, new_stream()));
    EXPECT_EQ(gpu.read(p, 1)[0], 6U);
    EXPECT_EQ(cuGraphExecUpdate(exec, build(3, true), &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
    EXPECT_NE(info.errorNode, nullptr);
    const CUgraph longer = build(3, false);
    WordsKernel(gpu.add, p, 1).add_to(longer);
    EXPECT_EQ(cuGraphExecUpdate(exec, longer, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  }));
}

TEST_P(Graphs, ClonesAndChildren) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    const CUgraph inner = new_graph();
    const CUgraphNode add = WordsKernel(gpu.add, p, 10).add_to(inner);
    const CUgraph outer = new_graph();
    const CUgraphNode store = WordsKernel(gpu.store, p, 1).add_to(outer);
    CUgraphNode child = nullptr;
    CU(cuGraphAddChildGraphNode(&child, outer, &store, 1, inner));
    WordsKernel(gpu.add, p, 100).add_to(outer, {child});
    CUgraph clone = nullptr;
    CU(cuGraphClone(&clone, outer));
    CUgraphNode twin = nullptr;
    CU(cuGraphNodeFindInClone(&twin, store, clone));
    EXPECT_NE(twin, store);
    EXPECT_EQ(cuGraphNodeFindInClone(&twin, add, clone), CUDA_ERROR_INVALID_VALUE);
    const WordsKernel two(gpu.store, p, 2);
    CU(cuGraphNodeFindInClone(&twin, store, clone));
    CU(cuGraphKernelNodeSetParams(twin, &two.params));
    CU(cuGraphDestroy(inner));
    const CUstream stream = new_stream();
    CU(cuGraphLaunch(instantiate(outer), stream));
    EXPECT_EQ(gpu.read(p, 1)[0], 111U);
    CU(cuGraphLaunch(instantiate(clone), stream));
    EXPECT_EQ(gpu.read(p, 1)[0], 112U);
    CUgraph embedded = nullptr;
    CU(cuGraphChildGraphNodeGetGraph(child, &embedded));
    EXPECT_EQ(cuGraphDestroy(embedded), CUDA_ERROR_INVALID_VALUE);
    // Launched in a capture, an instance becomes a child too.
    CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(cuGraphLaunch(instantiate(outer), stream));
    CU(gpu.launch_add(p, kWords, 1000, stream));
    CUgraph captured = nullptr;
    CU(cuStreamEndCapture(stream, &captured));
    CU(cuGraphLaunch(instantiate(captured), stream));
    EXPECT_EQ(gpu.read(p, 1)[0], 1111U);
  }));
}

TEST_P(Graphs, EventAndHostNodes) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    static std::atomic<int> calls{0};
    const CUdeviceptr p = allocate(kBytes);
    const CUevent before = new_event();
    const CUevent after = new_event();
    const CUgraph graph = new_graph();
    CUgraphNode wait = nullptr;
    CU(cuGraphAddEventWaitNode(&wait, graph, nullptr, 0, before));
    const CUgraphNode add = WordsKernel(gpu.add, p, 1).add_to(graph, {wait});
    CUgraphNode record = nullptr;
    CU(cuGraphAddEventRecordNode(&record, graph, &add, 1, after));
    const CUDA_HOST_NODE_PARAMS host = {[](void*) { ++calls; }, nullptr};
    CUgraphNode function = nullptr;
    CU(cuGraphAddHostNode(&function, graph, &record, 1, &host));
    CUevent asked = nullptr;
    CU(cuGraphEventRecordNodeGetEvent(record, &asked));
    EXPECT_EQ(asked, after);
    const CUgraphExec exec = instantiate(graph);
    const CUstream a = new_stream();
    const CUstream b = new_stream();
    Gate gate;
    gate.close(b);
    CU(gpu.launch_store(p, kWords, 1, b));
    CU(cuEventRecord(before, b));
    CU(cuGraphLaunch(exec, a));
    EXPECT_EQ(cuEventQuery(after), CUDA_ERROR_NOT_READY);
    gate.open();
    CU(cuEventSynchronize(after));
    CU(cuStreamSynchronize(a));
    EXPECT_EQ(calls.load(), 1);
    EXPECT_EQ(gpu.read(p, 1)[0], 2U);
  }));
}

TEST_P(Graphs, UserObjectsLiveAsLongAsTheirOwners) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    static std::atomic<int> destroyed{0};
    const auto wait = [] {
      for (int i = 0; i < 500 && destroyed.load() == 0; ++i) {
        const timespec pause{0, 2000000};
        nanosleep(&pause, nullptr);
      }
    };
    const CUgraph graph = new_graph();
    CUuserObject object = nullptr;
    EXPECT_EQ(cuUserObjectCreate(
                  &object, nullptr, [](void*) { ++destroyed; }, 1, 0),
              CUDA_ERROR_INVALID_VALUE);
    CU(cuUserObjectCreate(
        &object, nullptr, [](void*) { ++destroyed; }, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    CU(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    const CUgraphExec exec = instantiate(graph);
    CU(cuGraphDestroy(graph));
    EXPECT_EQ(destroyed.load(), 0);
    CU(cuGraphExecDestroy(exec));
    wait();
    EXPECT_EQ(destroyed.load(), 1);
  }));
}

TEST_P(Graphs, SurviveTheirContext) {
  EXPECT_CLEAN(run([] {
    CU(cuInit(0));
    CUcontext first = nullptr;
    CU(cuCtxCreate(&first, nullptr, 0, 0));
    static std::atomic<int> calls{0};
    const CUgraph graph = new_graph();
    const CUDA_HOST_NODE_PARAMS host = {[](void*) { ++calls; }, nullptr};
    CUgraphNode function = nullptr;
    CU(cuGraphAddHostNode(&function, graph, nullptr, 0, &host));
    const CUgraphExec exec = instantiate(graph);
    CU(cuGraphLaunch(exec, nullptr));
    CU(cuCtxDestroy(first));
    EXPECT_EQ(calls.load(), 1);
    CUcontext second = nullptr;
    CU(cuCtxCreate(&second, nullptr, 0, 0));
    CU(cuGraphLaunch(exec, nullptr));  // nothing in it belongs to the first
    CU(cuCtxSynchronize());
    EXPECT_EQ(calls.load(), 2);
  }));
}

// A graph of thousands of nodes is one operation of its stream, however deep the queue.
TEST_P(Graphs, ALongChain) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    const CUstream stream = new_stream();
    CU(gpu.launch_store(p, 1, 0, stream));
    CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    for (int i = 0; i < 3000; ++i) CU(gpu.launch_add(p, 1, 1, stream));
    CUgraph graph = nullptr;
    CU(cuStreamEndCapture(stream, &graph));
    const CUgraphExec exec = instantiate(graph);
    Gate gate;
    gate.close(stream);
    for (int i = 0; i < 4; ++i) CU(cuGraphLaunch(exec, stream));
    gate.open();
    EXPECT_EQ(gpu.read(p, 1)[0], 12000U);
  }));
}

}  // namespace
}  // namespace simgpu::test
