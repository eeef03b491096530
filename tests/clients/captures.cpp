// SPDX-License-Identifier: Apache-2.0
// Captures: what they name stays, and all else goes on moving.

#include <atomic>
#include <thread>

#include "tests/clients/graphs.h"

namespace clients {
namespace {

constexpr uint32_t kCrowd = 24;
constexpr int kSteps = 4;
constexpr uint32_t kGrace = 20;  // more operations than a buffer stays for without being named

// A stash of layers between two launches of the graph, larger than the cap: it leaves and returns.
void eager_part(Client& client, CUdeviceptr sum, std::vector<uint32_t>& wanted, int step) {
  std::vector<CUdeviceptr> stash;
  for (uint32_t i = 0; i < kCrowd; ++i) {
    stash.push_back(client.allocate());
    client.fill(stash.back(), 1000 * i + static_cast<uint32_t>(step));
  }
  for (uint32_t i = kCrowd; i-- > 0;) {
    client.mix(sum, stash[i]);
    mix_on_host(wanted, filled(1000 * i + static_cast<uint32_t>(step)));
  }
  client.disperse(stash);
}

// A training step of which a part is a graph, captured when what it names has left.
void capture_replay(Client& client) {
  const Graphs graphs(client);
  client.stream = new_stream(client);
  const CUdeviceptr weights = client.allocate();
  const CUdeviceptr input = client.allocate();
  const CUdeviceptr state = client.allocate();
  client.fill(weights, 5);
  client.fill(input, 50);
  client.fill(state, 500);
  const CUdeviceptr sum = client.allocate();
  client.fill(sum, 1);
  std::vector<uint32_t> w = filled(5), in = filled(50), st = filled(500), total = filled(1);
  eager_part(client, sum, total, 0);

  CHECK_CUDA(graphs.begin(client.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  client.mix(state, input);
  client.mix(weights, state);
  CUstreamCaptureStatus status{};
  CHECK_CUDA(graphs.is_capturing(client.stream, &status));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CUgraph graph = nullptr;
  CHECK_CUDA(graphs.end(client.stream, &graph));
  const CUgraphExec exec = graphs.instance(graph);
  CHECK_CUDA(graphs.destroy(graph));
  client.expect(weights, w);  // nothing has run yet

  for (int step = 1; step < kSteps; ++step) {
    client.fill(input, static_cast<uint32_t>(7 * step));
    in = filled(static_cast<uint32_t>(7 * step));
    CHECK_CUDA(graphs.launch(exec, client.stream));
    mix_on_host(st, in);
    mix_on_host(w, st);
    client.mix(sum, weights);
    mix_on_host(total, w);
    eager_part(client, sum, total, step);
  }
  client.expect(weights, w);
  client.expect(state, st);
  client.expect(sum, total);
  // The last launch may still run when its instance goes; what it names may leave only behind it.
  CHECK_CUDA(graphs.launch(exec, client.stream));
  mix_on_host(st, in);
  mix_on_host(w, st);
  CHECK_CUDA(graphs.destroy_exec(exec));
  const std::vector<CUdeviceptr> others = client.crowd(kCrowd);
  client.expect(weights, w);
  client.expect(state, st);
  client.disperse(others);
}

// The capture spreads to a second stream and comes back. The streams are blocking ones: while they
// capture, the default stream must not be touched by anybody. `user` ran last what has to leave
// then, to make room for what the capture names.
void fork_after_work_on(Client& client, const Graphs& graphs, CUstream first, CUstream second,
                        CUstream user) {
  const CUevent fork = new_event(client);
  const CUevent join = new_event(client);
  client.stream = user;
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  const CUdeviceptr left = client.allocate();
  const CUdeviceptr right = client.allocate();
  client.fill(left, 8);
  client.fill(right, 9);
  std::vector<uint32_t> l = filled(8), r = filled(9);

  CHECK_CUDA(graphs.begin(first, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK_CUDA(client.cuda.cuEventRecord(fork, first));
  CHECK_CUDA(client.cuda.cuStreamWaitEvent(second, fork, 0));
  client.stream = first;
  client.mix(left, buffers[0]);
  client.stream = second;
  for (uint32_t i = 1; i < 4; ++i) client.mix(right, buffers[i]);  // each has left
  CHECK_CUDA(client.cuda.cuEventRecord(join, second));
  CHECK_CUDA(client.cuda.cuStreamWaitEvent(first, join, 0));
  client.stream = first;
  client.mix(left, right);
  CUgraph graph = nullptr;
  CHECK_CUDA(graphs.end(first, &graph));

  const CUgraphExec exec = graphs.instance(graph);
  CHECK_CUDA(client.cuda.cuStreamSynchronize(user));  // only now: until here it was unfinished
  for (int step = 0; step < kSteps; ++step) {
    CHECK_CUDA(graphs.launch(exec, step % 2 == 0 ? first : second));
    mix_on_host(l, filled(0));
    for (uint32_t i = 1; i < 4; ++i) mix_on_host(r, filled(1000 * i));
    mix_on_host(l, r);
    client.stream = nullptr;
    for (uint32_t i = 4; i < kCrowd; ++i) client.fill(buffers[i], 1000 * i);  // others leave
  }
  for (const CUstream stream : {first, second}) CHECK_CUDA(client.cuda.cuStreamSynchronize(stream));
  client.expect(left, l);
  client.expect(right, r);
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  CHECK_CUDA(graphs.destroy(graph));
  CHECK_CUDA(graphs.destroy_exec(exec));
  client.disperse(buffers);
  client.free(left);
  client.free(right);
}

void forked_capture(Client& client) {
  const Graphs graphs(client);
  const CUstream first = new_stream(client, CU_STREAM_DEFAULT);
  const CUstream second = new_stream(client, CU_STREAM_DEFAULT);
  for (const CUstream user : {first, second, CUstream{nullptr}})
    fork_after_work_on(client, graphs, first, second, user);
}

// While one thread captures in the strictest mode, another allocates in stream order and works on
// more than fits: our calls on its behalf are forbidden ones, and must not spoil the capture.
void capture_beside_thread(Client& client) {
  const Graphs graphs(client);
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  const CUdeviceptr sum = client.allocate();
  client.fill(sum, 3);
  std::atomic<int> turn{0};
  std::thread other([&] {
    Client beside = client;
    CHECK_CUDA(beside.cuda.cuCtxSetCurrent(client.context));
    beside.stream = new_stream(beside);
    const CUevent done = new_event(beside);
    std::vector<uint32_t> own = filled(4);
    CUdeviceptr mine = 0;
    while (turn.load() == 0) std::this_thread::yield();
    CHECK_CUDA(beside.cuda.cuMemAllocAsync(&mine, kBytes, beside.stream));
    beside.fill(mine, 4);
    for (uint32_t i = 0; i < kCrowd; ++i) {
      CUdeviceptr scratch = 0;
      CHECK_CUDA(beside.cuda.cuMemAllocAsync(&scratch, kBytes, beside.stream));
      beside.fill(scratch, 11 * i);
      beside.mix(mine, scratch);
      mix_on_host(own, filled(11 * i));
      beside.mix(mine, buffers[i]);
      mix_on_host(own, filled(1000 * i));
      CHECK_CUDA(beside.cuda.cuMemFreeAsync(scratch, beside.stream));
    }
    CHECK_CUDA(beside.cuda.cuEventRecord(done, beside.stream));
    turn = 2;
    while (turn.load() == 2) std::this_thread::yield();
    beside.expect(mine, own);
    CHECK_CUDA(beside.cuda.cuMemFreeAsync(mine, beside.stream));
  });
  CHECK_CUDA(client.cuda.cuStreamSynchronize(client.stream));
  CHECK_CUDA(graphs.begin(client.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  client.mix(sum, buffers[0]);
  turn = 1;
  while (turn.load() != 2) std::this_thread::yield();
  client.mix(sum, buffers[1]);  // away again
  CUgraph graph = nullptr;
  CHECK_CUDA(graphs.end(client.stream, &graph));
  turn = 3;
  other.join();
  const CUgraphExec exec = graphs.instance(graph);
  CHECK_CUDA(graphs.launch(exec, client.stream));
  std::vector<uint32_t> wanted = filled(3);
  mix_on_host(wanted, filled(0));
  mix_on_host(wanted, filled(1000));
  client.expect(sum, wanted);
  client.disperse(buffers);
}

// Graph and instance are gone while the launch still runs: what it names may leave, but behind it.
void graph_destroyed_at_once(Client& client) {
  const Graphs graphs(client);
  const CUstream first = new_stream(client);
  client.stream = first;
  const CUdeviceptr sum = client.allocate();
  const CUdeviceptr from = client.allocate();
  client.fill(sum, 3);
  client.fill(from, 8);
  const CUdeviceptr other = client.allocate();
  for (uint32_t i = 0; i < kGrace; ++i) client.fill(other, i);
  CHECK_CUDA(graphs.begin(first, CU_STREAM_CAPTURE_MODE_GLOBAL));
  client.mix(sum, from);
  CUgraph graph = nullptr;
  CHECK_CUDA(graphs.end(first, &graph));
  const CUgraphExec exec = graphs.instance(graph);
  CHECK_CUDA(graphs.launch(exec, first));
  CHECK_CUDA(graphs.destroy(graph));
  CHECK_CUDA(graphs.destroy_exec(exec));
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CHECK_CUDA(client.cuda.cuStreamSynchronize(first));
  std::vector<uint32_t> wanted = filled(3);
  mix_on_host(wanted, filled(8));
  client.expect(sum, wanted);
  client.expect(from, filled(8));
  for (const CUdeviceptr at : {sum, from, other}) client.free(at);
  client.disperse(buffers);
}

// A capture that the program spoils itself gets the driver's codes, and what it named moves again.
void capture_invalidated(Client& client) {
  const Graphs graphs(client);
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  const CUdeviceptr sum = client.allocate();
  client.fill(sum, 3);
  std::vector<uint32_t> wanted = filled(3);
  CUgraph graph = nullptr;
  // More in all than fits: each attempt must give back what it named.
  for (uint32_t i = 0; i < kCrowd; ++i) {
    CHECK_CUDA(graphs.begin(client.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    client.mix(sum, buffers[i]);
    CHECK_RESULT(client.cuda.cuStreamSynchronize(client.stream),
                 CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    uint32_t words = kWords, seed = 1;
    CUdeviceptr to = sum;
    void* arguments[] = {&to, &words, &seed};
    CHECK_RESULT(client.cuda.cuLaunchKernel(client.function("fill"), 4, 1, 1, 64, 1, 1, 0,
                                            client.stream, arguments, nullptr),
                 CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK_RESULT(graphs.end(client.stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(graph == nullptr);
    client.mix(sum, buffers[i]);
    mix_on_host(wanted, filled(1000 * i));
  }
  // Not this thread's to end, and the capture goes on.
  CHECK_CUDA(graphs.begin(client.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  client.mix(sum, buffers[0]);
  std::thread([&] {
    CHECK_CUDA(client.cuda.cuCtxSetCurrent(client.context));
    CUgraph none = nullptr;
    CHECK_RESULT(graphs.end(client.stream, &none), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  }).join();
  // Memory of ours is not a graph's to free, and what a capture allocates is the driver's.
  CHECK_RESULT(client.cuda.cuMemFreeAsync(buffers[1], client.stream), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr scratch = 0;
  CHECK_CUDA(client.cuda.cuMemAllocAsync(&scratch, kBytes, client.stream));
  client.fill(scratch, 70);
  client.mix(sum, scratch);
  CHECK_CUDA(client.cuda.cuMemFreeAsync(scratch, client.stream));
  CHECK_CUDA(graphs.end(client.stream, &graph));
  const CUgraphExec exec = graphs.instance(graph);
  CHECK_CUDA(graphs.launch(exec, client.stream));
  mix_on_host(wanted, filled(0));
  mix_on_host(wanted, filled(70));
  client.expect(sum, wanted);
  // What a capture in the strictest mode forbids is forbidden, and what a relaxed one allows is
  // not.
  CHECK_CUDA(graphs.begin(client.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUdeviceptr at = 0;
  CHECK_RESULT(client.cuda.cuMemAlloc(&at, kBytes), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK_RESULT(graphs.end(client.stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK_CUDA(graphs.begin(client.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CHECK_CUDA(graphs.exchange_mode(&mode));
  at = client.allocate();
  CHECK_CUDA(graphs.exchange_mode(&mode));
  client.mix(sum, at);
  CHECK_CUDA(graphs.end(client.stream, &graph));
  CHECK_CUDA(graphs.destroy(graph));
  client.free(at);
  // Never ended: its stream goes instead.
  CHECK_CUDA(graphs.begin(client.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  client.mix(sum, buffers[2]);
  CHECK_CUDA(client.cuda.cuStreamDestroy(client.stream));
  client.stream = new_stream(client);
  client.free(client.allocate());  // a call that a capture would not allow
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  client.disperse(buffers);
}

// A table of pointers whose copy is a node: what it holds when the graph is launched is what
// counts.
void captured_table(Client& client) {
  const Graphs graphs(client);
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CUdeviceptr sum = client.allocate();
  CUdeviceptr table = client.allocate(256);
  client.fill(sum, 3);
  void* page = nullptr;
  CHECK_CUDA(client.cuda.cuMemHostAlloc(&page, 4096, 0));
  auto* entries = static_cast<CUdeviceptr*>(page);
  entries[0] = buffers[0];
  entries[1] = buffers[1];
  uint32_t count = 2;
  uint32_t words = kWords;
  CHECK_CUDA(graphs.begin(client.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK_CUDA(client.cuda.cuMemcpyHtoDAsync(table, entries, 16, client.stream));
  client.launch(client.function("mix_table"), {&sum, &table, &count, &words}, {8, 8, 4, 4});
  CUgraph graph = nullptr;
  CHECK_CUDA(graphs.end(client.stream, &graph));
  const CUgraphExec exec = graphs.instance(graph);
  std::vector<uint32_t> wanted = filled(3);
  for (uint32_t i = 2; i + 1 < kCrowd; i += 2) {
    CHECK_CUDA(client.cuda.cuStreamSynchronize(client.stream));
    entries[0] = buffers[i];
    entries[1] = buffers[i + 1];
    CHECK_CUDA(graphs.launch(exec, client.stream));
    mix_on_host(wanted, filled(1000 * i));
    mix_on_host(wanted, filled(1000 * (i + 1)));
    for (uint32_t other = 0; other < i; ++other) client.fill(buffers[other], 1000 * other);
  }
  client.expect(sum, wanted);
  CHECK_CUDA(graphs.destroy_exec(exec));
  CHECK_CUDA(graphs.destroy(graph));
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  client.disperse(buffers);
}

}  // namespace

const std::vector<Scenario> kCaptureScenarios = {
    {"capture-replay", &capture_replay},
    {"forked-capture", &forked_capture},
    {"capture-beside-thread", &capture_beside_thread},
    {"capture-invalidated", &capture_invalidated},
    {"graph-destroyed-at-once", &graph_destroyed_at_once},
    {"captured-table", &captured_table},
};

}  // namespace clients
