// SPDX-License-Identifier: Apache-2.0
// Calls for which the driver wants device memory of its own, while liboffload holds all there is.

#include <cstdio>

#include "tests/clients/graphs.h"

namespace clients {
namespace {

constexpr uint32_t kCrowd = 24;

void expect_crowd(Client& client, const std::vector<CUdeviceptr>& buffers) {
  for (uint32_t i = 0; i < buffers.size(); ++i) client.expect(buffers[i], filled(1000 * i));
  client.disperse(buffers);
}

// A graph with memory of its own asks for it when it is uploaded.
void upload_without_room(Client& client) {
  const auto upload = ENTRY_OF(client, cuGraphUpload);
  const Graphs graphs(client);
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CHECK_CUDA(graphs.begin(client.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CUdeviceptr own = 0;
  CHECK_CUDA(client.cuda.cuMemAllocAsync(&own, kBytes, client.stream));
  client.fill(own, 5);
  CHECK_CUDA(client.cuda.cuMemFreeAsync(own, client.stream));
  CUgraph graph = nullptr;
  CHECK_CUDA(graphs.end(client.stream, &graph));
  const CUgraphExec exec = graphs.instance(graph);
  CHECK_CUDA(upload(exec, client.stream));
  CHECK_CUDA(graphs.launch(exec, client.stream));
  CHECK_CUDA(client.cuda.cuStreamSynchronize(client.stream));
  CHECK_CUDA(graphs.destroy_exec(exec));
  CHECK_CUDA(graphs.destroy(graph));
  expect_crowd(client, buffers);
}

// A graph whose own memory is more than the card has beside what graphs name: the driver's code.
void launch_without_room(Client& client) {
  const Graphs graphs(client);
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CHECK_CUDA(graphs.begin(client.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CUdeviceptr own = 0;
  CHECK_CUDA(client.cuda.cuMemAllocAsync(&own, size_t{8} << 20, client.stream));
  client.fill(own, 5);
  CHECK_CUDA(client.cuda.cuMemFreeAsync(own, client.stream));
  CUgraph graph = nullptr;
  CHECK_CUDA(graphs.end(client.stream, &graph));
  const CUgraphExec exec = graphs.instance(graph);
  for (int i = 0; i < 2; ++i)
    CHECK_RESULT(graphs.launch(exec, client.stream), CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_CUDA(graphs.destroy_exec(exec));
  CHECK_CUDA(graphs.destroy(graph));
  expect_crowd(client, buffers);
}

// More in one go than is given up at first, and most of what there is.
void graph_of_much_memory(Client& client) {
  constexpr size_t kEach = size_t{1} << 20;
  constexpr uint32_t kEachWords = kEach / sizeof(uint32_t);
  constexpr uint32_t kCount = 52;
  const Graphs graphs(client);
  client.stream = new_stream(client);
  std::vector<CUdeviceptr> buffers;
  for (uint32_t i = 0; i < kCount; ++i) {
    buffers.push_back(client.allocate(kEach));
    client.fill(buffers.back(), i, kEachWords);
  }
  CHECK_CUDA(graphs.begin(client.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CUdeviceptr own = 0;
  CHECK_CUDA(client.cuda.cuMemAllocAsync(&own, 48 * kEach, client.stream));
  client.fill(own, 5);
  CHECK_CUDA(client.cuda.cuMemFreeAsync(own, client.stream));
  CUgraph graph = nullptr;
  CHECK_CUDA(graphs.end(client.stream, &graph));
  const CUgraphExec exec = graphs.instance(graph);
  for (int i = 0; i < 3; ++i) {
    CHECK_CUDA(graphs.launch(exec, client.stream));
    for (uint32_t each = 0; each < kCount; ++each)
      CHECK(client.read(buffers[each], kEachWords) == filled(each, kEachWords));
  }
  CHECK_CUDA(graphs.destroy_exec(exec));
  CHECK_CUDA(graphs.destroy(graph));
  client.disperse(buffers);
}

// The first call of each is refused for want of memory (by the simulated driver's list of faults).
// Each time some is given up, for good.
void refused_once(Client& client) {
  const Graphs graphs(client);
  const std::vector<CUdeviceptr> buffers = client.crowd(4 * kCrowd);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  const CUmodule module = client.load();
  const CUfunction function = client.function("mix");
  CUdeviceptr at = 0;
  size_t bytes = 0;
  const auto tell = [](const char* what, CUresult result) { std::printf("%s %d\n", what, result); };
  tell("global", ENTRY_OF(client, cuModuleGetGlobal)(&at, &bytes, module, "no_such_variable"));
  int value = 0;
  tell("attribute", ENTRY_OF(client, cuFuncGetAttribute)(
                        &value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
  tell("set attribute", ENTRY_OF(client, cuFuncSetAttribute)(
                            function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024));
  CUmodule of = nullptr;
  tell("module", ENTRY_OF(client, cuFuncGetModule)(&of, function));
  tell("load", ENTRY_OF(client, cuFuncLoad)(function));
  tell("occupancy",
       ENTRY_OF(client, cuOccupancyMaxActiveBlocksPerMultiprocessor)(&value, function, 64, 0));
  CUdeviceptr managed = 0;
  tell("managed", ENTRY_OF(client, cuMemAllocManaged)(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {client.device}};
  CUmemoryPool pool = nullptr;
  tell("pool", ENTRY_OF(client, cuMemPoolCreate)(&pool, &properties));
  CUcontext other = nullptr;
  tell("context", client.cuda.cuCtxCreate(&other, nullptr, 0, client.device));
  CHECK_CUDA(client.cuda.cuCtxDestroy(other));
  CHECK_CUDA(client.cuda.cuCtxSetCurrent(client.context));
  const CUstream stream = new_stream(client);
  CUgraph graph = nullptr;
  CHECK_CUDA(graphs.create(&graph, 0));
  CUgraphNode node = nullptr;
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.dst = buffers[0];
  fill.elementSize = 4;
  fill.width = kWords;
  fill.height = 1;
  tell("node", graphs.add_memset(&node, graph, nullptr, 0, &fill, client.context));
  const CUgraphExec exec = graphs.instance(graph);
  CUgraphExecUpdateResultInfo info{};
  tell("update", graphs.update(exec, graph, &info));
  tell("launch", graphs.launch(exec, stream));
  client.stream = stream;
  client.expect(buffers[0], std::vector<uint32_t>(kWords, 0));
  client.fill(buffers[0], 0);
  expect_crowd(client, buffers);
}

}  // namespace

const std::vector<Scenario> kRoomScenarios = {
    {"upload-without-room", &upload_without_room},
    {"launch-without-room", &launch_without_room},
    {"graph-of-much-memory", &graph_of_much_memory},
    {"refused-once", &refused_once},
};

}  // namespace clients
