// SPDX-License-Identifier: Apache-2.0
// Operations that wait for the host, and entries that liboffload does not know.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>

#include "tests/clients/client.h"

namespace clients {
namespace {

constexpr uint32_t kCrowd = 20;

// A host function stands in the stream between the use of buffers and their next use.
void host_function(Client& client) {
  static std::atomic<int> calls{0};
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  const CUdeviceptr sum = client.allocate();
  client.fill(sum, 2);
  std::vector<uint32_t> wanted = filled(2);
  for (uint32_t i = 0; i < kCrowd; ++i) {
    client.mix(sum, buffers[i]);
    mix_on_host(wanted, filled(1000 * i));
    CHECK_CUDA(client.cuda.cuLaunchHostFunc(
        client.stream, [](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &calls));
  }
  client.expect(sum, wanted);
  CHECK(calls == static_cast<int>(kCrowd));
  client.disperse(buffers);
}

// A stream waits for a flag that the host sets only after it has submitted, and allocated, more:
// whoever waits for that stream meanwhile hangs.
void flag_set_by_host(Client& client) {
  void* page = nullptr;
  CHECK_CUDA(client.cuda.cuMemHostAlloc(&page, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  auto* flag = static_cast<volatile uint32_t*>(page);
  *flag = 0;
  CUstream waiting = nullptr;
  CUstream working = nullptr;
  CHECK_CUDA(client.cuda.cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING));
  CHECK_CUDA(client.cuda.cuStreamCreate(&working, CU_STREAM_NON_BLOCKING));
  client.disperse(client.crowd(kCrowd));  // behind the flag no host memory may be pinned
  client.stream = waiting;
  const CUdeviceptr behind = client.allocate();
  const CUdeviceptr before = client.allocate();
  client.fill(before, 3);
  CHECK_CUDA(client.cuda.cuStreamWaitValue32(waiting, reinterpret_cast<CUdeviceptr>(page), 1,
                                             CU_STREAM_WAIT_VALUE_EQ));
  client.fill(behind, 4);
  client.mix(behind, before);
  client.stream = working;
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  for (size_t i = 0; i < buffers.size(); ++i)
    client.expect(buffers[i], filled(static_cast<uint32_t>(1000 * i)));
  *flag = 1;
  client.stream = waiting;
  std::vector<uint32_t> wanted = filled(4);
  mix_on_host(wanted, filled(3));
  client.expect(behind, wanted);
  client.disperse(buffers);
}

// As above, but nothing of the crowd's stands behind the flag: what the waiting stream uses is
// small, and the memory that the first to leave gives up has another shape than what is asked for.
void flag_elsewhere(Client& client) {
  constexpr size_t kSmall = 4096;
  void* page = nullptr;
  CHECK_CUDA(client.cuda.cuMemHostAlloc(&page, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  auto* flag = static_cast<volatile uint32_t*>(page);
  *flag = 0;
  CUstream waiting = nullptr;
  CUstream working = nullptr;
  CHECK_CUDA(client.cuda.cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING));
  CHECK_CUDA(client.cuda.cuStreamCreate(&working, CU_STREAM_NON_BLOCKING));
  const CUdeviceptr small = client.allocate(kSmall);
  CHECK_CUDA(client.cuda.cuMemsetD32(small, 1, kSmall / 4));
  CHECK_CUDA(client.cuda.cuStreamWaitValue32(waiting, reinterpret_cast<CUdeviceptr>(page), 1,
                                             CU_STREAM_WAIT_VALUE_EQ));
  CHECK_CUDA(client.cuda.cuMemsetD32Async(small, 3, kSmall / 4, waiting));
  client.stream = working;
  std::vector<CUdeviceptr> buffers(kCrowd);
  for (CUdeviceptr& buffer : buffers) {
    CHECK_CUDA(client.cuda.cuMemAllocAsync(&buffer, kBytes, working));
    client.fill(buffer, 7);
    for (int op = 0; op < 20; ++op)
      CHECK_CUDA(client.cuda.cuMemsetD32Async(buffer, 9, 16, working));
  }
  std::vector<uint32_t> wanted = filled(7);
  std::fill_n(wanted.begin(), 16, 9u);
  for (const CUdeviceptr buffer : buffers) client.expect(buffer, wanted);
  *flag = 1;
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  client.expect(small, std::vector<uint32_t>(kSmall / 4, 3));
  client.disperse(buffers);
}

// The stream that waits is new, and the crowd's grace was over before: nothing of it stands behind.
void flag_on_new_stream(Client& client) {
  void* page = nullptr;
  CHECK_CUDA(client.cuda.cuMemHostAlloc(&page, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  auto* flag = static_cast<volatile uint32_t*>(page);
  *flag = 0;
  CUstream waiting = nullptr;
  CHECK_CUDA(client.cuda.cuStreamCreate(&client.stream, CU_STREAM_NON_BLOCKING));
  CHECK_CUDA(client.cuda.cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING));
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  const CUdeviceptr sum = client.allocate();
  for (int op = 0; op < 20; ++op) client.fill(sum, 2);
  CHECK_CUDA(client.cuda.cuStreamWaitValue32(waiting, reinterpret_cast<CUdeviceptr>(page), 1,
                                             CU_STREAM_WAIT_VALUE_EQ));
  const CUdeviceptr more = client.allocate();
  client.fill(more, 5);
  client.expect(more, filled(5));
  *flag = 1;
  for (size_t i = 0; i < buffers.size(); ++i)
    client.expect(buffers[i], filled(static_cast<uint32_t>(1000 * i)));
  client.disperse(buffers);
}

// A host function that ends only when the host, which needs room first, lets it: nothing may wait
// for what stands behind it, and what stands behind it keeps its place.
void host_function_blocks(Client& client) {
  std::atomic<bool> go{false};
  CUstream waiting = nullptr;
  CUstream working = nullptr;
  CHECK_CUDA(client.cuda.cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING));
  CHECK_CUDA(client.cuda.cuStreamCreate(&working, CU_STREAM_NON_BLOCKING));
  client.stream = waiting;
  const CUdeviceptr behind = client.allocate();
  const CUdeviceptr before = client.allocate();
  client.fill(before, 3);
  CHECK_CUDA(client.cuda.cuLaunchHostFunc(
      waiting,
      [](void* wait_for) {
        while (!static_cast<std::atomic<bool>*>(wait_for)->load()) std::this_thread::yield();
      },
      &go));
  client.fill(behind, 4);
  client.mix(behind, before);
  client.stream = working;
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  for (size_t i = 0; i < buffers.size(); ++i)
    client.expect(buffers[i], filled(static_cast<uint32_t>(1000 * i)));
  go = true;
  client.stream = waiting;
  std::vector<uint32_t> wanted = filled(4);
  mix_on_host(wanted, filled(3));
  client.expect(behind, wanted);
  client.disperse(buffers);
}

// Flags in a buffer of ours, written in stream order.
void flag_in_buffer(Client& client) {
  CUstream stream = nullptr;
  CHECK_CUDA(client.cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  client.stream = stream;
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CHECK_CUDA(client.cuda.cuStreamWriteValue32(stream, buffers[0] + 40, 4711, 0));
  std::vector<uint32_t> wanted = filled(0);
  wanted[10] = 4711;
  client.expect(buffers[0], wanted);
  client.disperse(buffers);
}

// After the call of an entry that nobody knows all is home again, and nothing moves any more. The
// entry (of the simulated driver) adds one to every byte of a buffer that has left long ago, in
// stream order.
void unknown_entry(Client& client) {
  constexpr uint32_t kFew = 16;
  using Unknown = CUresult (*)(CUdeviceptr, size_t, CUstream);
  const auto unknown = reinterpret_cast<Unknown>(client.cuda.other("cuSimgpuUnknownA"));
  CHECK(unknown != nullptr);
  const std::vector<CUdeviceptr> buffers = client.crowd(kFew);
  const auto plus_ones = [](uint32_t seed, uint32_t times) {
    std::vector<uint32_t> values = filled(seed);
    for (uint32_t time = 0; time < times; ++time) {
      for (uint32_t& value : values) {
        uint32_t sum = 0;
        for (int byte = 0; byte < 4; ++byte)
          sum |= (((value >> (8 * byte)) + 1) & 0xFF) << (8 * byte);
        value = sum;
      }
    }
    return values;
  };
  CHECK_CUDA(unknown(buffers[0], kBytes, client.stream));
  const CUdeviceptr sum = client.allocate();
  client.fill(sum, 6);
  std::vector<uint32_t> wanted = filled(6);
  for (uint32_t i = 0; i < kFew; ++i) {
    client.mix(sum, buffers[i]);
    mix_on_host(wanted, plus_ones(1000 * i, i == 0 ? 1 : 0));
  }
  CHECK_CUDA(unknown(buffers[0], kBytes, client.stream));
  client.expect(buffers[0], plus_ones(0, 2));
  client.expect(sum, wanted);
  client.disperse(buffers);
}

// Fetched, as runtimes fetch hundreds, and never called: nothing changes.
void unknown_entry_not_called(Client& client) {
  CHECK(client.cuda.other("cuSimgpuUnknownA") != nullptr);
  CHECK(client.cuda.other("cuCtxFromGreenCtx") != nullptr);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  for (size_t i = 0; i < buffers.size(); ++i)
    client.expect(buffers[i], filled(static_cast<uint32_t>(1000 * i)));
  client.disperse(buffers);
}

// What was captured does not run, and is not launched either: the same is done behind it, on the
// same stream, while all goes on moving.
void capture(Client& client) {
  using Begin = CUresult (*)(CUstream, CUstreamCaptureMode);
  using End = CUresult (*)(CUstream, CUgraph*);
  const auto begin = reinterpret_cast<Begin>(client.cuda.other("cuStreamBeginCapture"));
  const auto end = reinterpret_cast<End>(client.cuda.other("cuStreamEndCapture"));
  CHECK(begin != nullptr && end != nullptr);
  CHECK_CUDA(client.cuda.cuStreamCreate(&client.stream, CU_STREAM_NON_BLOCKING));
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  const CUdeviceptr sum = client.allocate();
  client.fill(sum, 6);
  CHECK_CUDA(begin(client.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUgraph graph = nullptr;
  client.mix(sum, buffers[0]);
  CHECK_CUDA(end(client.stream, &graph));
  std::vector<uint32_t> wanted = filled(6);
  for (uint32_t i = 0; i < kCrowd; ++i) {
    client.mix(sum, buffers[i]);
    mix_on_host(wanted, filled(1000 * i));
  }
  client.expect(sum, wanted);
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  client.disperse(buffers);
}

}  // namespace

const std::vector<Scenario> kWaitScenarios = {
    {"host-function", &host_function},
    {"flag-set-by-host", &flag_set_by_host},
    {"flag-elsewhere", &flag_elsewhere},
    {"flag-on-new-stream", &flag_on_new_stream},
    {"host-function-blocks", &host_function_blocks},
    {"flag-in-buffer", &flag_in_buffer},
    {"unknown-entry", &unknown_entry},
    {"unknown-entry-not-called", &unknown_entry_not_called},
    {"capture", &capture},
};

}  // namespace clients
