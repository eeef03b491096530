// SPDX-License-Identifier: Apache-2.0
// Flags of other widths, several operations at once, and callbacks: as in waits.cpp, the host needs
// room before it lets go.

#include <atomic>
#include <functional>
#include <thread>

#include "tests/clients/graphs.h"

namespace clients {
namespace {

constexpr uint32_t kCrowd = 20;

// `stop` makes a stream wait, and may write to `before`; then the stream works behind that. `go`
// lets it on.
void work_behind(Client& client, const std::function<void(CUstream, CUdeviceptr before)>& stop,
                 const std::function<void()>& go, const std::vector<uint32_t>& left_before) {
  const CUstream waiting = new_stream(client);
  const CUstream working = new_stream(client);
  client.stream = waiting;
  const CUdeviceptr behind = client.allocate();
  const CUdeviceptr before = client.allocate();
  client.fill(before, 3);
  stop(waiting, before);
  client.fill(behind, 4);
  client.mix(behind, before);
  client.stream = working;
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  go();
  client.stream = waiting;
  std::vector<uint32_t> wanted = filled(4);
  mix_on_host(wanted, left_before);
  client.expect(behind, wanted);
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  client.disperse(buffers);
}

void several_at_once(Client& client) {
  const auto batch = ENTRY_OF(client, cuStreamBatchMemOp);
  auto* flag = static_cast<volatile uint32_t*>(host_page(client));
  std::vector<uint32_t> left = filled(3);
  left[0] = 99;
  work_behind(
      client,
      [&](CUstream stream, CUdeviceptr before) {
        CUstreamBatchMemOpParams operations[2] = {};
        operations[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
        operations[0].waitValue.address = reinterpret_cast<CUdeviceptr>(flag);
        operations[0].waitValue.value = 1;
        operations[0].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
        operations[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
        operations[1].writeValue.address = before;
        operations[1].writeValue.value = 99;
        CHECK_CUDA(batch(stream, 2, operations, 0));
      },
      [&] { *flag = 1; }, left);
}

void wide_flags(Client& client) {
  const auto wait = ENTRY_OF(client, cuStreamWaitValue64);
  const auto write = ENTRY_OF(client, cuStreamWriteValue64);
  constexpr uint64_t kValue = (uint64_t{7} << 32) + 1;
  auto* flag = static_cast<volatile uint64_t*>(host_page(client));
  std::vector<uint32_t> left = filled(3);
  left[0] = 1;
  left[1] = 7;
  work_behind(
      client,
      [&](CUstream stream, CUdeviceptr before) {
        CHECK_CUDA(
            wait(stream, reinterpret_cast<CUdeviceptr>(flag), kValue, CU_STREAM_WAIT_VALUE_EQ));
        CHECK_CUDA(write(stream, before, kValue, 0));
      },
      [&] { *flag = kValue; }, left);
}

void callback_blocks(Client& client) {
  const auto add = ENTRY_OF(client, cuStreamAddCallback);
  std::atomic<bool> lets_go{false};
  work_behind(
      client,
      [&](CUstream stream, CUdeviceptr) {
        const CUstreamCallback wait = [](CUstream, CUresult, void* flag) {
          while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::yield();
        };
        CHECK_CUDA(add(stream, wait, &lets_go, 0));
      },
      [&] { lets_go = true; }, filled(3));
}

}  // namespace

const std::vector<Scenario> kMoreWaitScenarios = {
    {"several-at-once", &several_at_once},
    {"wide-flags", &wide_flags},
    {"callback-blocks", &callback_blocks},
};

}  // namespace clients
