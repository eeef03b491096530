// SPDX-License-Identifier: Apache-2.0
// New parameters for nodes: each kind by its own entry and by the one for all kinds, in the graph
// (for instances still to be made) and in an instance (CUDA Driver API reference, "Graph
// Management"). Each kind is made to leave a number, and the number is looked at after each launch.
#include <atomic>
#include <cstring>
#include <string>

#include "tests/simgpu/tests/support/graphs.h"

namespace simgpu::test {
namespace {

// What a kind of node looks like that leaves `value`, and how it is told to.
struct Kind {
  const char* name;
  std::function<CUresult(CUgraphNode*, CUgraph, uint32_t)> add;
  std::function<CUresult(CUgraphNode, uint32_t)> set;
  std::function<CUresult(CUgraphExec, CUgraphNode, uint32_t)> set_in_instance;
  std::function<CUgraphNodeParams(uint32_t)> any;
  std::function<uint32_t(CUgraphNode)> ask;  // the value that its parameters have
};

// Memory that the kinds write to and read from; what parameters point to lives as long as it.
struct Place {
  Place() {
    std::vector<uint32_t> numbers(16);
    for (uint32_t i = 0; i < 16; ++i) numbers[i] = i;
    EXPECT_EQ(cuMemcpyHtoD(sources, numbers.data(), 64), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }
  Gpu gpu;
  CUdeviceptr word = allocate(kGraphBytes);
  CUdeviceptr sources = allocate(64);
  uint32_t count = 1;
  uint32_t value = 0;
  void* arguments[3] = {&word, &count, &value};
  CUstreamBatchMemOpParams write = {};

  uint32_t read() { return gpu.read(word, 1)[0]; }
  CUDA_KERNEL_NODE_PARAMS kernel(uint32_t number) {
    value = number;
    CUDA_KERNEL_NODE_PARAMS what = {};
    what.func = gpu.store;
    what.gridDimX = what.gridDimY = what.gridDimZ = 1;
    what.blockDimX = what.blockDimY = what.blockDimZ = 1;
    what.kernelParams = arguments;
    return what;
  }
  CUDA_MEMCPY3D copy(uint32_t number) const {
    CUDA_MEMCPY3D what = copy_of(word, sources + 4 * number);
    what.WidthInBytes = 4;
    return what;
  }
  CUDA_MEMSET_NODE_PARAMS fill(uint32_t number) const { return {word, 0, number, 4, 1, 1}; }
  CUDA_BATCH_MEM_OP_NODE_PARAMS batch(uint32_t number) {
    write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    write.writeValue.address = word;
    write.writeValue.value = number;
    return {gpu.context, 1, &write, 0};
  }
  // A host function writes the address that it is given.
  static CUDA_HOST_NODE_PARAMS host(uint32_t number) {
    return {[](void* data) { seen = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(data)); },
            reinterpret_cast<void*>(uintptr_t{number})};
  }
  static std::atomic<uint32_t> seen;
};
std::atomic<uint32_t> Place::seen{0};

Kind kernel_kind(Place& place) {
  return {"kernel",
          [&](CUgraphNode* node, CUgraph graph, uint32_t number) {
            const auto what = place.kernel(number);
            return cuGraphAddKernelNode(node, graph, nullptr, 0, &what);
          },
          [&](CUgraphNode node, uint32_t number) {
            const auto what = place.kernel(number);
            return cuGraphKernelNodeSetParams(node, &what);
          },
          [&](CUgraphExec exec, CUgraphNode node, uint32_t number) {
            const auto what = place.kernel(number);
            return cuGraphExecKernelNodeSetParams(exec, node, &what);
          },
          [&](uint32_t number) {
            CUgraphNodeParams all = {};
            all.type = CU_GRAPH_NODE_TYPE_KERNEL;
            const auto what = place.kernel(number);
            all.kernel.func = what.func;
            all.kernel.gridDimX = all.kernel.gridDimY = all.kernel.gridDimZ = 1;
            all.kernel.blockDimX = all.kernel.blockDimY = all.kernel.blockDimZ = 1;
            all.kernel.kernelParams = place.arguments;
            return all;
          },
          [](CUgraphNode node) {
            CUDA_KERNEL_NODE_PARAMS what = {};
            EXPECT_EQ(cuGraphKernelNodeGetParams(node, &what), CUDA_SUCCESS);
            return *static_cast<uint32_t*>(what.kernelParams[2]);
          }};
}

Kind copy_kind(Place& place) {
  return {"copy",
          [&](CUgraphNode* node, CUgraph graph, uint32_t number) {
            const auto what = place.copy(number);
            return cuGraphAddMemcpyNode(node, graph, nullptr, 0, &what, place.gpu.context);
          },
          [&](CUgraphNode node, uint32_t number) {
            const auto what = place.copy(number);
            return cuGraphMemcpyNodeSetParams(node, &what);
          },
          [&](CUgraphExec exec, CUgraphNode node, uint32_t number) {
            const auto what = place.copy(number);
            return cuGraphExecMemcpyNodeSetParams(exec, node, &what, place.gpu.context);
          },
          [&](uint32_t number) {
            CUgraphNodeParams all = {};
            all.type = CU_GRAPH_NODE_TYPE_MEMCPY;
            all.memcpy.copyCtx = place.gpu.context;
            all.memcpy.copyParams = place.copy(number);
            return all;
          },
          [&](CUgraphNode node) {
            CUDA_MEMCPY3D what = {};
            EXPECT_EQ(cuGraphMemcpyNodeGetParams(node, &what), CUDA_SUCCESS);
            return static_cast<uint32_t>((what.srcDevice - place.sources) / 4);
          }};
}

Kind fill_kind(Place& place) {
  return {"fill",
          [&](CUgraphNode* node, CUgraph graph, uint32_t number) {
            const auto what = place.fill(number);
            return cuGraphAddMemsetNode(node, graph, nullptr, 0, &what, place.gpu.context);
          },
          [&](CUgraphNode node, uint32_t number) {
            const auto what = place.fill(number);
            return cuGraphMemsetNodeSetParams(node, &what);
          },
          [&](CUgraphExec exec, CUgraphNode node, uint32_t number) {
            const auto what = place.fill(number);
            return cuGraphExecMemsetNodeSetParams(exec, node, &what, place.gpu.context);
          },
          [&](uint32_t number) {
            CUgraphNodeParams all = {};
            all.type = CU_GRAPH_NODE_TYPE_MEMSET;
            all.memset = {place.word, 0, number, 4, 1, 1, place.gpu.context};
            return all;
          },
          [](CUgraphNode node) {
            CUDA_MEMSET_NODE_PARAMS what = {};
            EXPECT_EQ(cuGraphMemsetNodeGetParams(node, &what), CUDA_SUCCESS);
            return what.value;
          }};
}

Kind host_kind(Place&) {
  return {"host",
          [](CUgraphNode* node, CUgraph graph, uint32_t number) {
            const auto what = Place::host(number);
            return cuGraphAddHostNode(node, graph, nullptr, 0, &what);
          },
          [](CUgraphNode node, uint32_t number) {
            const auto what = Place::host(number);
            return cuGraphHostNodeSetParams(node, &what);
          },
          [](CUgraphExec exec, CUgraphNode node, uint32_t number) {
            const auto what = Place::host(number);
            return cuGraphExecHostNodeSetParams(exec, node, &what);
          },
          [](uint32_t number) {
            CUgraphNodeParams all = {};
            all.type = CU_GRAPH_NODE_TYPE_HOST;
            const auto what = Place::host(number);
            all.host.fn = what.fn;
            all.host.userData = what.userData;
            return all;
          },
          [](CUgraphNode node) {
            CUDA_HOST_NODE_PARAMS what = {};
            EXPECT_EQ(cuGraphHostNodeGetParams(node, &what), CUDA_SUCCESS);
            return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(what.userData));
          }};
}

Kind batch_kind(Place& place) {
  return {"batch",
          [&](CUgraphNode* node, CUgraph graph, uint32_t number) {
            const auto what = place.batch(number);
            return cuGraphAddBatchMemOpNode(node, graph, nullptr, 0, &what);
          },
          [&](CUgraphNode node, uint32_t number) {
            const auto what = place.batch(number);
            return cuGraphBatchMemOpNodeSetParams(node, &what);
          },
          [&](CUgraphExec exec, CUgraphNode node, uint32_t number) {
            const auto what = place.batch(number);
            return cuGraphExecBatchMemOpNodeSetParams(exec, node, &what);
          },
          [&](uint32_t number) {
            CUgraphNodeParams all = {};
            all.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
            const auto what = place.batch(number);
            all.memOp = {what.ctx, what.count, what.paramArray, what.flags};
            return all;
          },
          [](CUgraphNode node) {
            CUDA_BATCH_MEM_OP_NODE_PARAMS what = {};
            EXPECT_EQ(cuGraphBatchMemOpNodeGetParams(node, &what), CUDA_SUCCESS);
            return static_cast<uint32_t>(what.paramArray[0].writeValue.value);
          }};
}

class NodeParameters : public testing::TestWithParam<Kind (*)(Place&)> {};

TEST_P(NodeParameters, CanBeChanged) {
  EXPECT_CLEAN(in_child({}, [] {
    Place place;
    const Kind kind = GetParam()(place);
    SCOPED_TRACE(kind.name);
    const bool on_host = std::strcmp(kind.name, "host") == 0;
    const CUstream stream = new_stream();
    const auto left_by = [&](CUgraphExec exec) {
      EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
      EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
      return on_host ? Place::seen.load() : place.read();
    };
    const CUgraph graph = new_graph();
    CUgraphNode node = nullptr;
    CU(kind.add(&node, graph, 1));
    const CUgraphExec first = instantiate(graph);
    EXPECT_EQ(left_by(first), 1U);
    CU(kind.set_in_instance(first, node, 2));
    EXPECT_EQ(left_by(first), 2U);
    EXPECT_EQ(kind.ask(node), 1U);  // the graph has what it had
    CUgraphNodeParams any = kind.any(3);
    CU(cuGraphExecNodeSetParams(first, node, &any));
    EXPECT_EQ(left_by(first), 3U);
    CU(kind.set(node, 4));
    EXPECT_EQ(kind.ask(node), 4U);
    EXPECT_EQ(left_by(first), 3U);  // the instance, too
    EXPECT_EQ(left_by(instantiate(graph)), 4U);
    any = kind.any(5);
    CU(cuGraphNodeSetParams(node, &any));
    EXPECT_EQ(kind.ask(node), 5U);
    EXPECT_EQ(left_by(instantiate(graph)), 5U);
    // A node of no special entry.
    const CUgraph other = new_graph();
    CUgraphNode made = nullptr;
    any = kind.any(6);
    CU(cuGraphAddNode(&made, other, nullptr, nullptr, 0, &any));
    EXPECT_EQ(kind.ask(made), 6U);
    EXPECT_EQ(left_by(instantiate(other)), 6U);
    // A node keeps its kind.
    CUgraphNodeParams empty = {};
    empty.type = CU_GRAPH_NODE_TYPE_EMPTY;
    EXPECT_EQ(cuGraphNodeSetParams(node, &empty), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuGraphExecNodeSetParams(first, node, &empty), CUDA_ERROR_INVALID_VALUE);
  }));
}

INSTANTIATE_TEST_SUITE_P(Kinds, NodeParameters,
                         testing::Values(kernel_kind, copy_kind, fill_kind, host_kind, batch_kind));

// cuGraph(Exec)EventRecordNodeSetEvent: which event a launch records. One that was never recorded
// counts as over.
TEST(NodeEvents, RecordNodes) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUevent events[] = {new_event(), new_event(), new_event()};
    const CUgraph graph = new_graph();
    CUgraphNode node = nullptr;
    CU(cuGraphAddEventRecordNode(&node, graph, nullptr, 0, events[0]));
    const CUgraphExec exec = instantiate(graph);
    CU(cuGraphExecEventRecordNodeSetEvent(exec, node, events[1]));
    CU(cuGraphEventRecordNodeSetEvent(node, events[2]));
    CUevent asked = nullptr;
    CU(cuGraphEventRecordNodeGetEvent(node, &asked));
    EXPECT_EQ(asked, events[2]);
    const CUstream stream = new_stream();
    const auto pending_after = [&](CUgraphExec launched) {
      Gate gate;
      gate.close(stream);
      EXPECT_EQ(cuGraphLaunch(launched, stream), CUDA_SUCCESS);
      std::string pending;
      for (CUevent event : events) {
        pending += cuEventQuery(event) == CUDA_ERROR_NOT_READY ? 'x' : '-';
      }
      gate.open();
      EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
      return pending;
    };
    EXPECT_EQ(pending_after(exec), "-x-");
    EXPECT_EQ(pending_after(instantiate(graph)), "--x");
    CU(cuEventDestroy(events[0]));
    EXPECT_EQ(cuGraphEventRecordNodeSetEvent(node, events[0]), CUDA_ERROR_INVALID_HANDLE);
  }));
}

// cuGraph(Exec)EventWaitNodeSetEvent: what a launch waits for.
TEST(NodeEvents, WaitNodes) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUevent closed = new_event();
    const CUevent open = new_event();
    const CUgraph graph = new_graph();
    CUgraphNode node = nullptr;
    CU(cuGraphAddEventWaitNode(&node, graph, nullptr, 0, closed));
    const CUgraphExec exec = instantiate(graph);
    CUevent asked = nullptr;
    CU(cuGraphEventWaitNodeGetEvent(node, &asked));
    EXPECT_EQ(asked, closed);
    const CUstream other = new_stream();
    const CUstream stream = new_stream();
    Gate gate;
    gate.close(other);
    CU(cuEventRecord(closed, other));
    CU(cuGraphExecEventWaitNodeSetEvent(exec, node, open));
    CU(cuGraphLaunch(exec, stream));
    CU(cuStreamSynchronize(stream));  // though the gate is closed
    CU(cuGraphExecEventWaitNodeSetEvent(exec, node, closed));
    CU(cuGraphLaunch(exec, stream));
    EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    CU(cuGraphEventWaitNodeSetEvent(node, open));
    CU(cuGraphEventWaitNodeGetEvent(node, &asked));
    EXPECT_EQ(asked, open);
    const CUstream free = new_stream();
    CU(cuGraphLaunch(instantiate(graph), free));
    CU(cuStreamSynchronize(free));
    gate.open();
    CU(cuStreamSynchronize(stream));
  }));
}

// cuGraphExecChildGraphNodeSetParams: "the topology of childGraph, as well as the node insertion
// order, must match that of the graph contained in hNode".
TEST(ChildGraphs, TakeParametersFromAGraphOfTheirShape) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kGraphBytes);
    const auto child_of = [&](uint32_t stored, uint32_t added) {
      const CUgraph child = new_graph();
      const CUgraphNode first = WordsKernel(gpu.store, p, stored).add_to(child);
      WordsKernel(gpu.add, p, added).add_to(child, {first});
      return child;
    };
    const CUgraph graph = new_graph();
    CUgraphNode node = nullptr;
    CU(cuGraphAddChildGraphNode(&node, graph, nullptr, 0, child_of(1, 10)));
    WordsKernel(gpu.add, p, 100).add_to(graph, {node});
    CUgraph within = nullptr;
    CU(cuGraphChildGraphNodeGetGraph(node, &within));
    size_t count = 0;
    CU(cuGraphGetNodes(within, nullptr, &count));
    EXPECT_EQ(count, 2U);
    const CUgraphExec exec = instantiate(graph);
    const CUstream stream = new_stream();
    CU(cuGraphLaunch(exec, stream));
    EXPECT_EQ(gpu.read(p, 1)[0], 111U);
    CU(cuGraphExecChildGraphNodeSetParams(exec, node, child_of(2, 20)));
    CU(cuGraphLaunch(exec, stream));
    EXPECT_EQ(gpu.read(p, 1)[0], 122U);
    const CUgraph other = new_graph();
    WordsKernel(gpu.store, p, 3).add_to(other);
    EXPECT_EQ(cuGraphExecChildGraphNodeSetParams(exec, node, other), CUDA_ERROR_INVALID_VALUE);
    WordsKernel(gpu.add, p, 30).add_to(other);  // no edge
    EXPECT_EQ(cuGraphExecChildGraphNodeSetParams(exec, node, other), CUDA_ERROR_INVALID_VALUE);
    CU(cuGraphLaunch(exec, stream));
    EXPECT_EQ(gpu.read(p, 1)[0], 122U);
  }));
}

}  // namespace
}  // namespace simgpu::test
