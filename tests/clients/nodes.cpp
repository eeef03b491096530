// SPDX-License-Identifier: Apache-2.0
// Graphs made by the newer entries, and nodes that wait for the host.

#include <atomic>
#include <functional>
#include <thread>

#include "tests/clients/graphs.h"

namespace clients {
namespace {

constexpr uint32_t kCrowd = 24;

struct Arguments {
  CUdeviceptr to;
  CUdeviceptr from;
  uint32_t words = kWords;
  void* list[3] = {&to, &from, &words};
};

CUgraphNodeParams kernel_node(Client& client, Arguments& arguments) {
  CUgraphNodeParams node{};
  node.type = CU_GRAPH_NODE_TYPE_KERNEL;
  node.kernel.func = client.function("mix");
  node.kernel.gridDimX = 4;
  node.kernel.blockDimX = 64;
  node.kernel.gridDimY = node.kernel.gridDimZ = 1;
  node.kernel.blockDimY = node.kernel.blockDimZ = 1;
  node.kernel.kernelParams = arguments.list;
  node.kernel.ctx = client.context;
  return node;
}

CUgraphNodeParams fill_node(Client& client, CUdeviceptr to, uint32_t value) {
  CUgraphNodeParams node{};
  node.type = CU_GRAPH_NODE_TYPE_MEMSET;
  node.memset.dst = to;
  node.memset.value = value;
  node.memset.elementSize = 4;
  node.memset.width = kWords;
  node.memset.height = 1;
  node.memset.ctx = client.context;
  return node;
}

CUDA_MEMCPY3D whole_copy(CUdeviceptr to, CUdeviceptr from) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.dstDevice = to;
  copy.WidthInBytes = kBytes;
  copy.Height = copy.Depth = 1;
  return copy;
}

CUDA_MEMSET_NODE_PARAMS whole_fill(CUdeviceptr to, uint32_t value) {
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.dst = to;
  fill.value = value;
  fill.elementSize = 4;
  fill.width = kWords;
  fill.height = 1;
  return fill;
}

void expect_rest(Client& client, const std::vector<CUdeviceptr>& buffers, uint32_t first) {
  for (uint32_t i = first; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  client.disperse(buffers);
}

// One entry for nodes of all kinds. A node that is destroyed lets go of what it named; one of an
// instance names something else at each launch.
void nodes_of_all_kinds(Client& client) {
  using Add = CUresult(CUgraphNode*, CUgraph, const CUgraphNode*, const CUgraphEdgeData*, size_t,
                       CUgraphNodeParams*);
  const auto add = entry<Add>(client, "cuGraphAddNode");
  const auto set_exec = ENTRY_OF(client, cuGraphExecNodeSetParams);
  const auto destroy_node = ENTRY_OF(client, cuGraphDestroyNode);
  const Graphs graphs(client);
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  const CUdeviceptr sum = client.allocate();
  client.fill(sum, 3);
  CUgraph graph = nullptr;
  CHECK_CUDA(graphs.create(&graph, 0));
  Arguments arguments{sum, buffers[0]};
  CUgraphNodeParams kernel = kernel_node(client, arguments);
  CUgraphNodeParams fill = fill_node(client, buffers[1], 77);
  CUgraphNodeParams copy{};
  copy.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  copy.memcpy.copyParams = whole_copy(buffers[2], buffers[3]);
  copy.memcpy.copyCtx = client.context;
  CUgraphNode nodes[4] = {};
  CHECK_CUDA(add(&nodes[0], graph, nullptr, nullptr, 0, &kernel));
  CHECK_CUDA(add(&nodes[1], graph, &nodes[0], nullptr, 1, &fill));
  CHECK_CUDA(add(&nodes[2], graph, &nodes[1], nullptr, 1, &copy));
  arguments.from = buffers[4];
  CHECK_CUDA(add(&nodes[3], graph, &nodes[2], nullptr, 1, &kernel));
  CHECK_CUDA(destroy_node(nodes[3]));
  const CUgraphExec exec = graphs.instance(graph);
  CHECK_CUDA(graphs.launch(exec, client.stream));
  std::vector<uint32_t> wanted = filled(3);
  mix_on_host(wanted, filled(0));
  // The rest, which is more than fits beside what the graph names, comes and goes.
  for (uint32_t i = 5; i < kCrowd; ++i) client.fill(buffers[i], 1000 * i);
  for (uint32_t i = 5; i < kCrowd; ++i) {
    arguments.from = buffers[i];
    CHECK_CUDA(set_exec(exec, nodes[0], &kernel));
    CHECK_CUDA(graphs.launch(exec, client.stream));
    mix_on_host(wanted, filled(1000 * i));
  }
  client.expect(sum, wanted);
  client.expect(buffers[1], std::vector<uint32_t>(kWords, 77));
  client.expect(buffers[2], filled(3000));
  CHECK_CUDA(graphs.destroy_exec(exec));
  CHECK_CUDA(graphs.destroy(graph));
  expect_rest(client, buffers, 3);
}

// Copies and fills get other parameters, in an instance and in the graph that others are made of.
void copies_and_fills_of_graphs(Client& client) {
  const auto exec_copy = ENTRY_OF(client, cuGraphExecMemcpyNodeSetParams);
  const auto exec_fill = ENTRY_OF(client, cuGraphExecMemsetNodeSetParams);
  const auto set_copy = ENTRY_OF(client, cuGraphMemcpyNodeSetParams);
  const auto set_fill = ENTRY_OF(client, cuGraphMemsetNodeSetParams);
  const auto instantiate = ENTRY_OF(client, cuGraphInstantiateWithParams);
  const auto set_node = ENTRY_OF(client, cuGraphNodeSetParams);
  const Graphs graphs(client);
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  std::vector<std::vector<uint32_t>> wanted;
  for (uint32_t i = 0; i < kCrowd; ++i) wanted.push_back(filled(1000 * i));
  CUgraph graph = nullptr;
  CHECK_CUDA(graphs.create(&graph, 0));
  CUDA_MEMCPY3D copy = whole_copy(buffers[1], buffers[0]);
  CUDA_MEMSET_NODE_PARAMS fill = whole_fill(buffers[2], 8);
  CUgraphNode copy_node = nullptr;
  CUgraphNode fill_node_of = nullptr;
  CHECK_CUDA(graphs.add_memcpy(&copy_node, graph, nullptr, 0, &copy, client.context));
  CHECK_CUDA(graphs.add_memset(&fill_node_of, graph, &copy_node, 1, &fill, client.context));
  CUDA_GRAPH_INSTANTIATE_PARAMS how{};
  CUgraphExec exec = nullptr;
  CHECK_CUDA(instantiate(&exec, graph, &how));
  CHECK_CUDA(graphs.launch(exec, client.stream));
  wanted[1] = wanted[0];
  wanted[2].assign(kWords, 8);
  for (uint32_t round = 0; round < 2; ++round) {
    for (uint32_t i = 3; i + 1 < kCrowd; ++i) {
      copy = whole_copy(buffers[i + 1], buffers[i]);
      fill = whole_fill(buffers[i], i);
      CHECK_CUDA(exec_copy(exec, copy_node, &copy, client.context));
      CHECK_CUDA(exec_fill(exec, fill_node_of, &fill, client.context));
      CHECK_CUDA(graphs.launch(exec, client.stream));
      wanted[i + 1] = wanted[i];
      wanted[i].assign(kWords, i);
    }
  }
  for (uint32_t i = 3; i + 1 < kCrowd; ++i) {
    copy = whole_copy(buffers[i], buffers[i + 1]);
    fill = whole_fill(buffers[i + 1], 100 + i);
    CHECK_CUDA(set_copy(copy_node, &copy));
    CUgraphNodeParams any = fill_node(client, buffers[i + 1], 100 + i);
    CHECK_CUDA(i % 2 == 0 ? set_fill(fill_node_of, &fill) : set_node(fill_node_of, &any));
    const CUgraphExec other = graphs.instance(graph);
    CHECK_CUDA(graphs.launch(other, client.stream));
    CHECK_CUDA(graphs.destroy_exec(other));
    wanted[i] = wanted[i + 1];
    wanted[i + 1].assign(kWords, 100 + i);
  }
  CHECK_CUDA(graphs.destroy_exec(exec));
  CHECK_CUDA(graphs.destroy(graph));
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], wanted[i]);
  client.disperse(buffers);
}

// The graph is launched and waits for the host, which needs room before it lets it go.
void launch_and_crowd(Client& client, const Graphs& graphs, CUgraph graph,
                      const std::function<void()>& go, CUdeviceptr named,
                      const std::vector<uint32_t>& wanted) {
  const CUstream waiting = new_stream(client);
  const CUgraphExec exec = graphs.instance(graph);
  const CUdeviceptr later = client.allocate();
  CHECK_CUDA(graphs.launch(exec, waiting));
  client.stream = waiting;
  client.fill(later, 77);  // no graph keeps it: it could leave, but for what it waits for
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  go();
  CHECK_CUDA(client.cuda.cuStreamSynchronize(waiting));
  client.expect(named, wanted);
  client.expect(later, filled(77));
  client.free(later);
  CHECK_CUDA(graphs.destroy_exec(exec));
  CHECK_CUDA(graphs.destroy(graph));
  expect_rest(client, buffers, 0);
}

void host_node(Client& client) {
  const auto add_host = ENTRY_OF(client, cuGraphAddHostNode);
  const Graphs graphs(client);
  std::atomic<bool> lets_go{false};
  const CUdeviceptr behind = client.allocate();
  CUgraph graph = nullptr;
  CHECK_CUDA(graphs.create(&graph, 0));
  CUDA_HOST_NODE_PARAMS host = {};
  host.fn = [](void* flag) {
    while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::yield();
  };
  host.userData = &lets_go;
  CUgraphNode nodes[2] = {};
  CHECK_CUDA(add_host(&nodes[0], graph, nullptr, 0, &host));
  const CUDA_MEMSET_NODE_PARAMS fill = whole_fill(behind, 8);
  CHECK_CUDA(graphs.add_memset(&nodes[1], graph, &nodes[0], 1, &fill, client.context));
  launch_and_crowd(
      client, graphs, graph, [&] { lets_go = true; }, behind, std::vector<uint32_t>(kWords, 8));
}

// The node waits for a flag and then writes to a buffer; first it was made for another one.
void batch_node(Client& client, bool set_in_instance) {
  const auto add_batch = ENTRY_OF(client, cuGraphAddBatchMemOpNode);
  const auto set_batch = ENTRY_OF(client, cuGraphBatchMemOpNodeSetParams);
  const auto set_exec = ENTRY_OF(client, cuGraphExecBatchMemOpNodeSetParams);
  const Graphs graphs(client);
  auto* flag = static_cast<volatile uint32_t*>(host_page(client));
  const CUdeviceptr first = client.allocate();
  const CUdeviceptr written = client.allocate();
  client.fill(first, 2);
  client.fill(written, 1);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  CUstreamBatchMemOpParams operations[2] = {};
  operations[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operations[0].waitValue.address = reinterpret_cast<CUdeviceptr>(flag);
  operations[0].waitValue.value = 1;
  operations[0].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  operations[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operations[1].writeValue.address = first;
  operations[1].writeValue.value = 5;
  CUDA_BATCH_MEM_OP_NODE_PARAMS batch{};
  batch.ctx = client.context;
  batch.count = 2;
  batch.paramArray = operations;
  CUgraph graph = nullptr;
  CHECK_CUDA(graphs.create(&graph, 0));
  CUgraphNode node = nullptr;
  CHECK_CUDA(add_batch(&node, graph, nullptr, 0, &batch));
  operations[1].writeValue.address = written;
  std::vector<uint32_t> wanted = filled(1);
  wanted[0] = 5;
  if (!set_in_instance) {
    CHECK_CUDA(set_batch(node, &batch));
    return launch_and_crowd(
        client, graphs, graph, [&] { *flag = 1; }, written, wanted);
  }
  const CUgraphExec exec = graphs.instance(graph);
  CHECK_CUDA(set_exec(exec, node, &batch));
  client.stream = new_stream(client);
  const CUstream waiting = new_stream(client);
  CHECK_CUDA(graphs.launch(exec, waiting));
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  *flag = 1;
  CHECK_CUDA(client.cuda.cuStreamSynchronize(waiting));
  client.expect(written, wanted);
  client.expect(first, filled(2));
  expect_rest(client, buffers, 0);
}
void batch_node_of_graph(Client& client) {
  batch_node(client, false);
}
void batch_node_of_instance(Client& client) {
  batch_node(client, true);
}

// A stream captures into a graph that is there already.
void capture_to_graph(Client& client) {
  const auto begin = ENTRY_OF(client, cuStreamBeginCaptureToGraph);
  const Graphs graphs(client);
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  const CUdeviceptr sum = client.allocate();
  client.fill(sum, 3);
  CUgraph graph = nullptr;
  CUgraph captured = nullptr;
  CHECK_CUDA(graphs.create(&graph, 0));
  CHECK_CUDA(begin(client.stream, graph, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
  client.mix(sum, buffers[0]);
  CHECK_CUDA(graphs.end(client.stream, &captured));
  CHECK(captured == graph);
  const CUgraphExec exec = graphs.instance(graph);
  for (uint32_t i = 1; i < kCrowd; ++i) client.fill(buffers[i], 1000 * i);
  CHECK_CUDA(graphs.launch(exec, client.stream));
  std::vector<uint32_t> wanted = filled(3);
  mix_on_host(wanted, filled(0));
  client.expect(sum, wanted);
  CHECK_CUDA(graphs.destroy_exec(exec));
  CHECK_CUDA(graphs.destroy(graph));
  expect_rest(client, buffers, 0);
}

// The graph inside a node is changed after it was put there.
void graph_in_a_node(Client& client) {
  const auto graph_of = ENTRY_OF(client, cuGraphChildGraphNodeGetGraph);
  const Graphs graphs(client);
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CUgraph inner = nullptr;
  CUgraph outer = nullptr;
  CUgraph embedded = nullptr;
  CUgraphNode nodes[3] = {};
  CHECK_CUDA(graphs.create(&inner, 0));
  CHECK_CUDA(graphs.create(&outer, 0));
  CUDA_MEMSET_NODE_PARAMS fill = whole_fill(buffers[0], 8);
  CHECK_CUDA(graphs.add_memset(&nodes[0], inner, nullptr, 0, &fill, client.context));
  CHECK_CUDA(graphs.add_child(&nodes[1], outer, nullptr, 0, inner));
  CHECK_CUDA(graph_of(nodes[1], &embedded));
  fill = whole_fill(buffers[1], 9);
  CHECK_CUDA(graphs.add_memset(&nodes[2], embedded, nullptr, 0, &fill, client.context));
  const CUgraphExec exec = graphs.instance(outer);
  for (uint32_t i = 2; i < kCrowd; ++i) client.fill(buffers[i], 1000 * i);
  CHECK_CUDA(graphs.launch(exec, client.stream));
  client.expect(buffers[0], std::vector<uint32_t>(kWords, 8));
  client.expect(buffers[1], std::vector<uint32_t>(kWords, 9));
  CHECK_CUDA(graphs.destroy_exec(exec));
  for (const CUgraph each : {inner, outer}) CHECK_CUDA(graphs.destroy(each));
  expect_rest(client, buffers, 2);
}

}  // namespace

const std::vector<Scenario> kNodeScenarios = {
    {"nodes-of-all-kinds", &nodes_of_all_kinds},
    {"copies-and-fills-of-graphs", &copies_and_fills_of_graphs},
    {"host-node", &host_node},
    {"batch-node", &batch_node_of_graph},
    {"batch-node-of-instance", &batch_node_of_instance},
    {"capture-to-graph", &capture_to_graph},
    {"graph-in-a-node", &graph_in_a_node},
};

}  // namespace clients
