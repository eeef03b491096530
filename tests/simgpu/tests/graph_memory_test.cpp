// SPDX-License-Identifier: Apache-2.0
// Memory that graphs allocate (cuda.h, cuGraphAddMemAllocNode).
#include "tests/simgpu/tests/support/graphs.h"

namespace simgpu::test {
namespace {

constexpr uint32_t kWords = kGraphWords;
constexpr size_t kBytes = kGraphBytes;

class GraphMemory : public testing::TestWithParam<const char*> {
 protected:
  Outcome run(const std::function<void()>& body, const char* memory = "256MiB") {
    return in_child({{"SIMGPU_SCHEDULE", GetParam()}, {"SIMGPU_MEMORY", memory}}, body);
  }
};

INSTANTIATE_TEST_SUITE_P(Schedules, GraphMemory, testing::Values("fifo", "late", "random:11"));

CUdeviceptr add_allocation(CUgraph graph, size_t bytes, CUgraphNode* node,
                           const std::vector<CUgraphNode>& before = {}) {
  CUDA_MEM_ALLOC_NODE_PARAMS what = {};
  what.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  what.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  what.bytesize = bytes;
  EXPECT_EQ(cuGraphAddMemAllocNode(node, graph, before.data(), before.size(), &what), CUDA_SUCCESS);
  return what.dptr;
}

cuuint64_t graph_memory(CUgraphMem_attribute attribute) {
  cuuint64_t bytes = 0;
  EXPECT_EQ(cuDeviceGetGraphMemAttribute(0, attribute, &bytes), CUDA_SUCCESS);
  return bytes;
}

TEST_P(GraphMemory, MemoryOfTheirOwn) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    const CUgraph graph = new_graph();
    CUgraphNode made = nullptr;
    const CUdeviceptr q = add_allocation(graph, kBytes, &made);
    const CUgraphNode store = WordsKernel(gpu.store, q, 7).add_to(graph, {made});
    const CUDA_MEMCPY3D what = copy_of(p, q);
    CUgraphNode copy = nullptr;
    CU(cuGraphAddMemcpyNode(&copy, graph, &store, 1, &what, gpu.context));
    CUgraphNode freed = nullptr;
    CU(cuGraphAddMemFreeNode(&freed, graph, &copy, 1, q));
    EXPECT_EQ(cuGraphAddMemFreeNode(&freed, graph, &copy, 1, q), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuGraphAddMemFreeNode(&freed, graph, &copy, 1, p), CUDA_ERROR_INVALID_VALUE);
    CUgraph clone = nullptr;
    EXPECT_EQ(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0U);
    const CUgraphExec exec = instantiate(graph);
    CUgraphExec second = nullptr;
    EXPECT_EQ(cuGraphInstantiateWithFlags(&second, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
    const CUstream stream = new_stream();
    for (int i = 0; i < 3; ++i) CU(cuGraphLaunch(exec, stream));
    EXPECT_EQ(gpu.read(p, 1)[0], 7U);
    EXPECT_EQ(cuMemFree(q), CUDA_ERROR_INVALID_VALUE);  // the graph has freed it
    EXPECT_EQ(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0U);
    EXPECT_GT(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), 0U);
    EXPECT_GT(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0U);
    CU(cuDeviceGraphMemTrim(0));
    EXPECT_EQ(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0U);
    CU(cuGraphLaunch(exec, stream));  // at the same address again
    EXPECT_EQ(gpu.read(p, 1)[0], 7U);
  }));
}

// What a capture allocates has no bytes behind it before the graph is launched.
TEST_P(GraphMemory, CapturedCopiesAndFillsOfIt) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    const CUstream stream = new_stream();
    CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    CUdeviceptr q = 0;
    CU(cuMemAllocAsync(&q, kBytes, stream));
    CU(cuMemsetD32Async(q, 7, kBytes / 4, stream));
    CU(cuMemsetD32Async(q + 4, 8, kBytes / 4 - 1, stream));
    CU(cuMemcpyDtoDAsync(p, q, kBytes / 2, stream));
    CU(cuMemcpyAsync(p + kBytes / 2, q + kBytes / 2, kBytes / 2, stream));
    EXPECT_EQ(cuMemcpyDtoDAsync(p, q + 4, kBytes, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemsetD32Async(q + 4, 1, kBytes / 4, stream), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemFreeAsync(q, stream));
    CUgraph graph = nullptr;
    CU(cuStreamEndCapture(stream, &graph));
    const CUgraphExec exec = instantiate(graph);
    for (int i = 0; i < 2; ++i) CU(cuGraphLaunch(exec, stream));
    CU(cuStreamSynchronize(stream));
    std::vector<uint32_t> expected(kWords, 8);
    expected[0] = 7;
    EXPECT_EQ(gpu.read(p, kWords), expected);
  }));
}

TEST_P(GraphMemory, MemoryThatOutlivesTheLaunch) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUgraph graph = new_graph();
    CUgraphNode made = nullptr;
    const CUdeviceptr q = add_allocation(graph, kBytes, &made);
    WordsKernel(gpu.store, q, 7).add_to(graph, {made});
    const CUgraphExec exec = instantiate(graph);
    const CUstream stream = new_stream();
    EXPECT_EQ(cuMemFreeAsync(q, stream), CUDA_ERROR_INVALID_VALUE);  // not yet
    CU(cuGraphLaunch(exec, stream));
    EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);  // still allocated
    EXPECT_EQ(gpu.read(q, 1)[0], 7U);
    CU(cuMemFreeAsync(q, stream));
    CU(cuGraphLaunch(exec, stream));
    CU(cuMemFree(q));
    CU(cuGraphExecDestroy(exec));
    const CUgraphExec frees = instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    for (int i = 0; i < 3; ++i) CU(cuGraphLaunch(frees, stream));
    EXPECT_EQ(gpu.read(q, 1)[0], 7U);
  }));
}

TEST_P(GraphMemory, CapturedAllocations) {
  EXPECT_CLEAN(run([] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    const CUstream stream = new_stream();
    CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CUdeviceptr q = 0;
    CU(cuMemAllocAsync(&q, kBytes, stream));
    CU(gpu.launch_store(q, kWords, 12, stream));
    CU(gpu.launch_copy(p, q, kWords, stream));
    CU(cuMemFreeAsync(q, stream));
    EXPECT_EQ(cuMemFreeAsync(q, stream), CUDA_ERROR_INVALID_VALUE);
    CUgraph graph = nullptr;
    CU(cuStreamEndCapture(stream, &graph));
    const CUgraphExec exec = instantiate(graph);
    for (int i = 0; i < 2; ++i) CU(cuGraphLaunch(exec, stream));
    EXPECT_EQ(gpu.read(p, 1)[0], 12U);
  }));
}

TEST_P(GraphMemory, OutOfMemoryComesAtTheLaunch) {
  EXPECT_CLEAN(run(
      [] {
        Gpu gpu;
        const CUgraph graph = new_graph();
        CUgraphNode made = nullptr;
        add_allocation(graph, 48 << 20, &made);
        const CUgraphExec exec = instantiate(graph);
        const CUdeviceptr most = allocate(40 << 20);
        const CUstream stream = new_stream();
        EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_ERROR_OUT_OF_MEMORY);
        CU(cuMemFree(most));
        CU(cuGraphUpload(exec, stream));
        CU(cuGraphLaunch(exec, stream));
        CU(cuStreamSynchronize(stream));
      },
      "64MiB"));
}

}  // namespace
}  // namespace simgpu::test
