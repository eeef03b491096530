// SPDX-License-Identifier: Apache-2.0
// Memory that other processes or devices take part in: collectives, handles.

#include <dlfcn.h>

#include <chrono>
#include <thread>

#include "tests/clients/client.h"

namespace clients {
namespace {

constexpr uint32_t kCrowd = 24;

#ifdef CLIENT_NCCL
struct Library {
  Library() {
    void* const handle = dlopen(CLIENT_NCCL, RTLD_NOW);
    CHECK(handle != nullptr);
    launch = reinterpret_cast<decltype(launch)>(dlsym(handle, "collective_launch"));
    allocate = reinterpret_cast<decltype(allocate)>(dlsym(handle, "collective_allocate"));
    CHECK(launch != nullptr && allocate != nullptr);
  }
  CUresult (*launch)(decltype(&cuLaunchKernel), CUfunction, CUstream, void**, void**, int*);
  CUresult (*allocate)(decltype(&cuMemAlloc), CUdeviceptr*, size_t, int*);
  int calls = 0;
};

// A kernel of a communication library has not run yet, and may not before another process gets on.
// The program goes on to need room: what stands behind that kernel stays until it has passed.
void run_collective(Client& client, bool by_block, bool in_graph) {
  Library library;
  CUstream beside = nullptr;
  CHECK_CUDA(client.cuda.cuStreamCreate(&client.stream, CU_STREAM_NON_BLOCKING));
  CHECK_CUDA(client.cuda.cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
  CUdeviceptr own = 0;
  CHECK_CUDA(library.allocate(client.cuda.cuMemAlloc, &own, kBytes, &library.calls));
  CHECK_CUDA(client.cuda.cuMemsetD32(own, 9, kWords));
  CUdeviceptr gradient = client.allocate();
  client.fill(gradient, 1);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  const CUfunction mix = client.function("mix_reversed");  // has no twin: it takes its time
  uint32_t words = kWords;
  uint32_t zero = 0;
  struct {
    uint32_t words, zero;
    CUdeviceptr from, to;
  } block{words, zero, own, gradient};
  size_t bytes = sizeof block;
  void* parameters[] = {&words, &zero, &own, &gradient};
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  const auto all_reduce = [&] {
    CHECK_CUDA(library.launch(client.cuda.cuLaunchKernel, mix, beside,
                              by_block ? nullptr : parameters, by_block ? extra : nullptr,
                              &library.calls));
  };
  CUgraphExec exec = nullptr;
  if (in_graph) {
    const auto begin = reinterpret_cast<CUresult (*)(CUstream, CUstreamCaptureMode)>(
        client.cuda.other("cuStreamBeginCapture"));
    const auto end =
        reinterpret_cast<CUresult (*)(CUstream, CUgraph*)>(client.cuda.other("cuStreamEndCapture"));
    const auto instantiate = reinterpret_cast<CUresult (*)(CUgraphExec*, CUgraph, cuuint64_t)>(
        client.cuda.other("cuGraphInstantiateWithFlags"));
    CUgraph graph = nullptr;
    CHECK_CUDA(begin(beside, CU_STREAM_CAPTURE_MODE_GLOBAL));
    all_reduce();
    CHECK_CUDA(end(beside, &graph));
    CHECK_CUDA(instantiate(&exec, graph, 0));
    const auto launch =
        reinterpret_cast<CUresult (*)(CUgraphExec, CUstream)>(client.cuda.other("cuGraphLaunch"));
    CHECK_CUDA(launch(exec, beside));
  } else {
    all_reduce();
  }
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CHECK_CUDA(client.cuda.cuStreamSynchronize(beside));
  std::vector<uint32_t> wanted = filled(1);
  mix_on_host(wanted, std::vector<uint32_t>(kWords, 9));
  client.expect(gradient, wanted);
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  client.disperse(buffers);
}

// What the library's kernel works on stands in a table in its own memory, where the arguments were
// too many. The buffers have left since the table was written.
void collective_by_table(Client& client) {
  Library library;
  const CUstream beside = nullptr;
  CUdeviceptr table = 0;
  CHECK_CUDA(library.allocate(client.cuda.cuMemAlloc, &table, 4096, &library.calls));
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  const CUdeviceptr entries[2] = {buffers[0], buffers[1]};
  CHECK_CUDA(client.cuda.cuMemcpyHtoD(table, entries, sizeof entries));
  const std::vector<CUdeviceptr> more = client.crowd(kCrowd);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  std::this_thread::sleep_for(std::chrono::milliseconds{300});
  CUdeviceptr sum = client.allocate();
  client.fill(sum, 5);
  uint32_t count = 2;
  uint32_t words = kWords;
  void* parameters[] = {&sum, &table, &count, &words};
  CHECK_CUDA(library.launch(client.cuda.cuLaunchKernel, client.function("mix_table"), beside,
                            parameters, nullptr, &library.calls));
  std::vector<uint32_t> wanted = filled(5);
  mix_on_host(wanted, filled(0));
  mix_on_host(wanted, filled(1000));
  client.expect(sum, wanted);
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  client.disperse(buffers);
  client.disperse(more);
}

void collective(Client& client) {
  run_collective(client, false, false);
}
void collective_by_block(Client& client) {
  run_collective(client, true, false);
}
void collective_in_graph(Client& client) {
  run_collective(client, true, true);
}
#endif

// NCCL is linked into another library, so that nobody but the kernel's name tells of it.
void collective_by_name(Client& client) {
  CUstream beside = nullptr;
  CHECK_CUDA(client.cuda.cuStreamCreate(&client.stream, CU_STREAM_NON_BLOCKING));
  CHECK_CUDA(client.cuda.cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
  const CUdeviceptr gradient = client.allocate();
  const CUdeviceptr from = client.allocate();
  client.fill(gradient, 1);
  client.fill(from, 9);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  CUdeviceptr arguments[2] = {gradient, from};
  uint32_t words = kWords;
  client.stream = beside;
  client.launch(client.function("ncclDevKernel_Mix"), {&arguments[0], &arguments[1], &words},
                {8, 8, 4});
  CHECK_CUDA(client.cuda.cuStreamCreate(&client.stream, CU_STREAM_NON_BLOCKING));
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CHECK_CUDA(client.cuda.cuStreamSynchronize(beside));
  std::vector<uint32_t> wanted = filled(1);
  mix_on_host(wanted, filled(9));
  client.expect(gradient, wanted);
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  client.disperse(buffers);
}

// A handle for another process. What is allocated in stream order is moved all the same.
void shared_by_handle(Client& client) {
  const CUdeviceptr shared = client.allocate();
  client.fill(shared, 3);
  std::vector<CUdeviceptr> buffers;
  for (uint32_t i = 0; i < kCrowd; ++i) {
    CUdeviceptr at = 0;
    CHECK_CUDA(client.cuda.cuMemAllocAsync(&at, kBytes, client.stream));
    client.fill(at, 1000 * i);
    buffers.push_back(at);
  }
  CUipcMemHandle handle{};
  CHECK_CUDA(client.cuda.cuIpcGetMemHandle(&handle, shared));
  client.expect(shared, filled(3));
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  for (const CUdeviceptr at : buffers) CHECK_CUDA(client.cuda.cuMemFreeAsync(at, client.stream));
  client.free(shared);
}

}  // namespace

const std::vector<Scenario> kSharingScenarios = {
#ifdef CLIENT_NCCL
    {"collective", &collective},
    {"collective-by-block", &collective_by_block},
    {"collective-in-graph", &collective_in_graph},
    {"collective-by-table", &collective_by_table},
#endif
    {"collective-by-name", &collective_by_name},
    {"shared-by-handle", &shared_by_handle},
};

}  // namespace clients
