// SPDX-License-Identifier: Apache-2.0
// Graphs made or changed by hand: what they name stays while one made from them lives.

#include "tests/clients/graphs.h"

namespace clients {
namespace {

constexpr uint32_t kCrowd = 24;

CUgraph capture_mix(Client& client, const Graphs& graphs, CUdeviceptr to, CUdeviceptr from) {
  CHECK_CUDA(graphs.begin(client.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  client.mix(to, from);
  CUgraph graph = nullptr;
  CHECK_CUDA(graphs.end(client.stream, &graph));
  return graph;
}

// An instance is updated by another graph, many times: what only the earlier ones named may leave
// again, or there is no room soon.
void graph_update(Client& client) {
  const Graphs graphs(client);
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  const CUdeviceptr sum = client.allocate();
  client.fill(sum, 3);
  std::vector<uint32_t> wanted = filled(3);
  CUgraphExec exec = nullptr;
  for (uint32_t i = 0; i < kCrowd; ++i) {
    const CUgraph graph = capture_mix(client, graphs, sum, buffers[i]);
    if (exec == nullptr) {
      exec = graphs.instance(graph);
    } else {
      CUgraphExecUpdateResultInfo info{};
      CHECK_CUDA(graphs.update(exec, graph, &info));
    }
    CHECK_CUDA(graphs.destroy(graph));
    CHECK_CUDA(graphs.launch(exec, client.stream));
    mix_on_host(wanted, filled(1000 * i));
  }
  client.expect(sum, wanted);
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  CHECK_CUDA(graphs.destroy_exec(exec));
  client.disperse(buffers);
}

// A graph made by hand: kernel, copy, fill, a child, a clone, and parameters set afterwards.
void graph_by_hand(Client& client) {
  const Graphs graphs(client);
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CUdeviceptr sum = client.allocate();
  const CUdeviceptr copy = client.allocate();
  client.fill(sum, 3);
  uint32_t words = kWords;
  const auto kernel = [&](void** arguments) {
    CUDA_KERNEL_NODE_PARAMS node{};
    node.func = client.function("mix");
    node.gridDimX = 4;
    node.blockDimX = 64;
    node.gridDimY = node.gridDimZ = node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = arguments;
    return node;
  };
  CUdeviceptr from = buffers[0];
  void* arguments[] = {&sum, &from, &words};
  CUgraph child = nullptr;
  CUgraphNode mixing = nullptr;
  CHECK_CUDA(graphs.create(&child, 0));
  CUDA_KERNEL_NODE_PARAMS node = kernel(arguments);
  CHECK_CUDA(graphs.add_kernel(&mixing, child, nullptr, 0, &node));

  CUgraph graph = nullptr;
  CUgraphNode filling = nullptr, inner = nullptr, copying = nullptr, last = nullptr;
  CHECK_CUDA(graphs.create(&graph, 0));
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.dst = buffers[1];
  fill.elementSize = 4;
  fill.value = 77;
  fill.width = kWords;
  fill.height = 1;
  CHECK_CUDA(graphs.add_memset(&filling, graph, nullptr, 0, &fill, client.context));
  CHECK_CUDA(graphs.add_child(&inner, graph, &filling, 1, child));
  CUDA_MEMCPY3D move{};
  move.srcMemoryType = move.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  move.srcDevice = buffers[2];
  move.dstDevice = copy;
  move.WidthInBytes = kBytes;
  move.Height = move.Depth = 1;
  CHECK_CUDA(graphs.add_memcpy(&copying, graph, &inner, 1, &move, client.context));
  from = buffers[1];
  CHECK_CUDA(graphs.add_kernel(&last, graph, &copying, 1, &node));
  CUgraph clone = nullptr;
  CHECK_CUDA(graphs.clone(&clone, graph));
  CHECK_CUDA(graphs.destroy(child));

  std::vector<uint32_t> wanted = filled(3);
  const std::vector<uint32_t> sevens(kWords, 77);
  const auto run = [&](CUgraphExec exec, const std::vector<uint32_t>& at_last) {
    CHECK_CUDA(graphs.launch(exec, client.stream));
    mix_on_host(wanted, filled(0));
    mix_on_host(wanted, at_last);
    for (uint32_t i = 3; i < kCrowd; ++i) client.fill(buffers[i], 1000 * i);
  };
  const CUgraphExec exec = graphs.instance(graph);
  run(exec, sevens);
  from = buffers[3];
  CHECK_CUDA(graphs.set_exec_kernel(exec, last, &node));
  run(exec, filled(3000));
  from = buffers[4];
  CHECK_CUDA(graphs.set_kernel(last, &node));
  const CUgraphExec other = graphs.instance(graph);
  CHECK_CUDA(graphs.destroy(graph));
  run(other, filled(4000));
  run(exec, filled(3000));
  for (const CUgraphExec each : {exec, other}) CHECK_CUDA(graphs.destroy_exec(each));
  for (uint32_t i = 3; i < kCrowd; ++i) client.fill(buffers[i], 1000 * i);  // all of theirs leaves
  const CUgraphExec cloned = graphs.instance(clone);
  CHECK_CUDA(graphs.destroy(clone));
  run(cloned, sevens);
  client.expect(sum, wanted);
  client.expect(buffers[1], sevens);
  client.expect(copy, filled(2000));
  CHECK_CUDA(graphs.destroy_exec(cloned));
  for (uint32_t i = 3; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  client.disperse(buffers);
}

// What a graph that is alive names is not given to others when it is freed; once the graph has
// gone, it is.
void freed_while_graph_lives(Client& client) {
  const Graphs graphs(client);
  client.stream = new_stream(client);
  const CUdeviceptr sum = client.allocate();
  client.fill(sum, 3);
  const CUdeviceptr named = client.allocate();
  client.fill(named, 30);
  const CUgraph graph = capture_mix(client, graphs, named, sum);
  const CUgraphExec exec = graphs.instance(graph);
  CHECK_CUDA(graphs.destroy(graph));
  client.free(named);
  CHECK_RESULT(client.cuda.cuMemFree(named), CUDA_ERROR_INVALID_VALUE);
  std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  for (const CUdeviceptr at : buffers) CHECK(at != named);
  CHECK_CUDA(graphs.launch(exec, client.stream));  // into memory that is nobody's
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  client.disperse(buffers);
  CHECK_CUDA(graphs.launch(exec, client.stream));
  CHECK_CUDA(graphs.destroy_exec(exec));
  // Eight times what fits, each used while the one before may still be: the freed one is among
  // them.
  bool again = false;
  for (int round = 0; round < 8; ++round) {
    buffers = client.crowd(kCrowd);
    for (const CUdeviceptr at : buffers) again = again || at == named;
    for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
    client.disperse(buffers);
  }
  CHECK(again);
}

// The same for small ones, which never move.
void small_freed_while_graph_lives(Client& client) {
  constexpr uint32_t kFew = 1024;  // words
  const Graphs graphs(client);
  client.stream = new_stream(client);
  std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  const CUdeviceptr named = client.allocate(kFew * sizeof(uint32_t));
  client.fill(named, 30, kFew);
  CHECK_CUDA(graphs.begin(client.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  client.fill(named, 77, kFew);
  CUgraph graph = nullptr;
  CHECK_CUDA(graphs.end(client.stream, &graph));
  const CUgraphExec exec = graphs.instance(graph);
  CHECK_CUDA(graphs.destroy(graph));
  client.free(named);
  CHECK_RESULT(client.cuda.cuMemFree(named), CUDA_ERROR_INVALID_VALUE);
  std::vector<CUdeviceptr> others;
  for (uint32_t i = 0; i < 40; ++i) {
    others.push_back(client.allocate(kFew * sizeof(uint32_t)));
    CHECK(others.back() != named);
    client.fill(others.back(), 100 * i, kFew);
  }
  CHECK_CUDA(graphs.launch(exec, client.stream));  // into memory that is nobody's
  for (uint32_t i = 0; i < others.size(); ++i) client.expect(others[i], filled(100 * i, kFew));
  CHECK_CUDA(graphs.launch(exec, client.stream));
  CHECK_CUDA(graphs.destroy_exec(exec));
  bool again = false;
  for (uint32_t i = 0; i < 40; ++i) {  // while the launch may still run
    others.push_back(client.allocate(kFew * sizeof(uint32_t)));
    again = again || others.back() == named;
    client.fill(others.back(), i, kFew);
    client.expect(others.back(), filled(i, kFew));
  }
  CHECK(again);
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  client.disperse(others);
  client.disperse(buffers);
}

// Parameters are set anew at every step, of an instance and of the graph: what a node named before
// may leave again, or there is no room soon.
void node_parameters(Client& client) {
  constexpr uint32_t kRounds = 3;
  const Graphs graphs(client);
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CUdeviceptr sum = client.allocate();
  client.fill(sum, 3);
  std::vector<uint32_t> wanted = filled(3);
  CUdeviceptr from = buffers[0];
  uint32_t words = kWords;
  void* arguments[] = {&sum, &from, &words};
  CUDA_KERNEL_NODE_PARAMS node{};
  node.func = client.function("mix");
  node.gridDimX = 4;
  node.blockDimX = 64;
  node.gridDimY = node.gridDimZ = node.blockDimY = node.blockDimZ = 1;
  node.kernelParams = arguments;
  CUgraph graph = nullptr;
  CUgraphNode mixing = nullptr;
  CHECK_CUDA(graphs.create(&graph, 0));
  CHECK_CUDA(graphs.add_kernel(&mixing, graph, nullptr, 0, &node));
  const CUgraphExec exec = graphs.instance(graph);
  const auto run = [&](CUgraphExec which, uint32_t i) {
    CHECK_CUDA(graphs.launch(which, client.stream));
    mix_on_host(wanted, filled(1000 * i));
  };
  for (uint32_t i = 0; i < kRounds * kCrowd; ++i) {
    from = buffers[i % kCrowd];
    CHECK_CUDA(graphs.set_exec_kernel(exec, mixing, &node));
    run(exec, i % kCrowd);
  }
  // One that the driver refuses leaves it as it was.
  from = buffers[2];
  CUDA_KERNEL_NODE_PARAMS wrong = node;
  wrong.gridDimX = 0;
  CHECK(graphs.set_exec_kernel(exec, mixing, &wrong) != CUDA_SUCCESS);
  run(exec, kCrowd - 1);
  for (uint32_t i = 0; i < kRounds * kCrowd; ++i) {
    from = buffers[i % kCrowd];
    CHECK_CUDA(graphs.set_kernel(mixing, &node));
    const CUgraphExec fresh = graphs.instance(graph);
    run(fresh, i % kCrowd);
    CHECK_CUDA(graphs.destroy_exec(fresh));
  }
  run(exec, kCrowd - 1);
  client.expect(sum, wanted);
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  CHECK_CUDA(graphs.destroy_exec(exec));
  CHECK_CUDA(graphs.destroy(graph));
  client.disperse(buffers);
}

// The driver needs memory for code that is launched for the first time, beside an open capture and
// in it, and liboffload holds all of it.
void code_without_room_in_capture(Client& client) {
  const Graphs graphs(client);
  const CUstream beside = new_stream(client);
  const CUstream captured = new_stream(client);
  std::vector<CUfunction> mixes;
  for (int i = 0; i < 4; ++i) {
    CUfunction mix = nullptr;
    CHECK_CUDA(client.cuda.cuModuleGetFunction(&mix, client.load(), "mix"));
    mixes.push_back(mix);
  }
  client.stream = beside;
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CUdeviceptr sum = client.allocate();
  client.fill(sum, 3);
  CUdeviceptr other = client.allocate();
  client.fill(other, 4);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  uint32_t words = kWords;
  const auto mix = [&](size_t which, CUdeviceptr to, CUdeviceptr from) {
    client.launch(mixes[which], {&to, &from, &words}, {8, 8, 4});
  };
  CHECK_CUDA(graphs.begin(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
  client.stream = captured;
  mix(0, sum, buffers[0]);
  client.stream = beside;
  mix(1, other, buffers[1]);
  mix(2, other, buffers[2]);
  client.stream = captured;
  mix(3, sum, buffers[3]);
  CUgraph graph = nullptr;
  CHECK_CUDA(graphs.end(captured, &graph));
  const CUgraphExec exec = graphs.instance(graph);
  std::vector<uint32_t> wanted = filled(3);
  for (int i = 0; i < 2; ++i) {
    CHECK_CUDA(graphs.launch(exec, captured));
    mix_on_host(wanted, filled(0));
    mix_on_host(wanted, filled(3000));
  }
  client.expect(sum, wanted);
  wanted = filled(4);
  mix_on_host(wanted, filled(1000));
  mix_on_host(wanted, filled(2000));
  client.stream = beside;
  client.expect(other, wanted);
  CHECK_CUDA(graphs.destroy_exec(exec));
  CHECK_CUDA(graphs.destroy(graph));
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  client.disperse(buffers);
}

}  // namespace

const std::vector<Scenario> kGraphScenarios = {
    {"small-freed-while-graph-lives", &small_freed_while_graph_lives},
    {"node-parameters", &node_parameters},
    {"code-without-room-in-capture", &code_without_room_in_capture},
    {"graph-update", &graph_update},
    {"graph-by-hand", &graph_by_hand},
    {"freed-while-graph-lives", &freed_while_graph_lives},
};

}  // namespace clients
