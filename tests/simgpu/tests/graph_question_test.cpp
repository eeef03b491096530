// SPDX-License-Identifier: Apache-2.0
// What graphs, their nodes and instances tell, and what lives with them (CUDA Driver API reference,
// "Graph Management").
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/simgpu/tests/support/graphs.h"

namespace simgpu::test {
namespace {

// cuGraphKernelNodeSetAttribute, -GetAttribute, -CopyAttributes.
TEST(NodeAttributes, AreKeptAndCopied) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kGraphBytes);
    const CUgraph graph = new_graph();
    const CUgraphNode a = WordsKernel(gpu.store, p, 1).add_to(graph);
    const CUgraphNode b = WordsKernel(gpu.add, p, 1).add_to(graph, {a});
    CUkernelNodeAttrValue value = {};
    value.priority = -3;
    CU(cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    value = {};
    CU(cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    EXPECT_EQ(value.priority, 0);
    CU(cuGraphKernelNodeCopyAttributes(b, a));
    CU(cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    EXPECT_EQ(value.priority, -3);
  }));
}

// cuGraphMemAllocNodeGetParams, cuGraphMemFreeNodeGetParams, cuDeviceSetGraphMemAttribute.
TEST(MemoryNodes, TellWhatTheyAre) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    CUDA_MEM_ALLOC_NODE_PARAMS what = {};
    what.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    what.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    what.bytesize = 4 << 20;
    const CUgraph graph = new_graph();
    CUgraphNode allocation = nullptr;
    CU(cuGraphAddMemAllocNode(&allocation, graph, nullptr, 0, &what));
    CUgraphNode free = nullptr;
    CU(cuGraphAddMemFreeNode(&free, graph, &allocation, 1, what.dptr));
    CUDA_MEM_ALLOC_NODE_PARAMS asked = {};
    CU(cuGraphMemAllocNodeGetParams(allocation, &asked));
    EXPECT_EQ(asked.bytesize, size_t{4} << 20);
    EXPECT_EQ(asked.dptr, what.dptr);
    CUdeviceptr address = 0;
    CU(cuGraphMemFreeNodeGetParams(free, &address));
    EXPECT_EQ(address, what.dptr);
    EXPECT_EQ(cuGraphMemFreeNodeGetParams(allocation, &address), CUDA_ERROR_INVALID_VALUE);
    CU(cuGraphLaunch(instantiate(graph), new_stream()));
    CU(cuCtxSynchronize());
    const auto ask = [](CUgraphMem_attribute attribute) {
      cuuint64_t value = 0;
      EXPECT_EQ(cuDeviceGetGraphMemAttribute(0, attribute, &value), CUDA_SUCCESS);
      return value;
    };
    EXPECT_EQ(ask(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), cuuint64_t{4} << 20);
    cuuint64_t zero = 0;
    CU(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero));
    EXPECT_EQ(ask(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), 0U);
    EXPECT_EQ(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &zero),
              CUDA_ERROR_INVALID_VALUE);
  }));
}

// cuGraphExecGetFlags: what it was instantiated with; UPLOAD is no property of the instance.
TEST(Instances, KnowTheirFlags) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUgraph graph = new_graph();
    const auto flags_of = [](CUgraphExec exec) {
      cuuint64_t flags = 99;
      EXPECT_EQ(cuGraphExecGetFlags(exec, &flags), CUDA_SUCCESS);
      return flags;
    };
    EXPECT_EQ(flags_of(instantiate(graph)), 0U);
    EXPECT_EQ(flags_of(instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)),
              cuuint64_t{CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY});
  }));
}

// cuUserObjectRetain, -Release, cuGraphReleaseUserObject: destroyed with the last reference.
TEST(UserObjects, AreCounted) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    static std::atomic<int> destroyed{0};
    CUuserObject object = nullptr;
    CU(cuUserObjectCreate(
        &object, nullptr, [](void*) { ++destroyed; }, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    CU(cuUserObjectRetain(object, 2));  // three
    const CUgraph graph = new_graph();
    CU(cuGraphRetainUserObject(graph, object, 1, 0));  // and the graph's
    CU(cuUserObjectRelease(object, 3));
    EXPECT_EQ(destroyed.load(), 0);
    CU(cuGraphReleaseUserObject(graph, object, 1));
    for (int i = 0; i < 500 && destroyed == 0; ++i) usleep(2000);
    EXPECT_EQ(destroyed.load(), 1);
  }));
}

// cuGraphDebugDotPrint: a file in Graphviz's language with every node and every edge.
TEST(Drawings, HaveAllNodesAndEdges) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kGraphBytes);
    const CUgraph child = new_graph();
    WordsKernel(gpu.add, p, 7).add_to(child);
    const CUgraph graph = new_graph();
    const CUgraphNode top = WordsKernel(gpu.store, p, 1).add_to(graph);
    CUgraphNode middle = nullptr;
    CU(cuGraphAddChildGraphNode(&middle, graph, &top, 1, child));
    CUgraphNode end = nullptr;
    const CUgraphNode both[] = {top, middle};
    CU(cuGraphAddEmptyNode(&end, graph, both, 2));
    char path[] = "/tmp/simgpu-dot-XXXXXX";
    close(mkstemp(path));
    const auto print = [&](unsigned flags) {
      EXPECT_EQ(cuGraphDebugDotPrint(graph, path, flags), CUDA_SUCCESS);
      std::stringstream text;
      text << std::ifstream(path).rdbuf();
      return text.str();
    };
    const auto count = [](const std::string& text, const std::string& word) {
      size_t found = 0;
      for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++found;
      return found;
    };
    const std::string plain = print(0);
    EXPECT_EQ(plain.find("digraph"), 0U);
    EXPECT_EQ(count(plain, "subgraph"), 2U);
    EXPECT_EQ(count(plain, "KERNEL"), 2U);
    EXPECT_EQ(count(plain, "EMPTY"), 1U);
    EXPECT_EQ(count(plain, " -> "), 3U);
    EXPECT_EQ(count(plain, "{"), count(plain, "}"));
    EXPECT_EQ(count(plain, "<<<"), 0U);
    EXPECT_EQ(count(print(CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS), "<<<1,1,1|64,1,1>>>"), 2U);
    EXPECT_EQ(count(print(CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE), "<<<"), 2U);
    unlink(path);
    EXPECT_EQ(cuGraphDebugDotPrint(graph, "/nowhere/at/all", 0), CUDA_ERROR_OPERATING_SYSTEM);
    EXPECT_EQ(cuGraphDebugDotPrint(graph, path, 1U << 31), CUDA_ERROR_INVALID_VALUE);
  }));
}

}  // namespace
}  // namespace simgpu::test
