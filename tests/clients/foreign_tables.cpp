// SPDX-License-Identifier: Apache-2.0
// Tables of pointers in memory of the driver's: a pool of the program's own. What they point to has
// left when they are used. (What a communication library allocates: sharing.cpp.)

#include <chrono>
#include <cstring>
#include <thread>

#include "tests/clients/graphs.h"

namespace clients {
namespace {

constexpr uint32_t kCrowd = 20;
constexpr size_t kTableBytes = 4096;

struct OwnPool {
  explicit OwnPool(const Client& client) : client_(client) {
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {client.device}};
    CHECK_CUDA(ENTRY_OF(client, cuMemPoolCreate)(&pool_, &properties));
  }
  CUdeviceptr allocate(size_t bytes) {
    CUdeviceptr at = 0;
    CHECK_CUDA(client_.cuda.cuMemAllocFromPoolAsync(&at, bytes, pool_, client_.stream));
    return at;
  }

 private:
  const Client& client_;
  CUmemoryPool pool_ = nullptr;
};

void mix_through(Client& client, CUdeviceptr sum, CUdeviceptr table, uint32_t entries) {
  uint32_t words = kWords;
  client.launch(client.function("mix_table"), {&sum, &table, &entries, &words}, {8, 8, 4, 4});
}

// All that is there so far leaves; addresses change hands.
std::vector<CUdeviceptr> drive_out(Client& client) {
  std::vector<CUdeviceptr> more = client.crowd(kCrowd);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  std::this_thread::sleep_for(std::chrono::milliseconds{300});
  return more;
}

void in_own_pool(Client& client) {
  client.stream = new_stream(client);
  OwnPool pool(client);
  const CUdeviceptr tables = pool.allocate(kTableBytes);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  const CUdeviceptr sum = client.allocate();
  client.fill(sum, 7);
  std::vector<uint32_t> wanted = filled(7);
  // Two of them in one block, and one that another takes the place of.
  const auto write = [&](size_t at, uint32_t first) {
    const CUdeviceptr entries[2] = {buffers[first], buffers[first + 1]};
    CHECK_CUDA(client.cuda.cuMemcpyHtoDAsync(tables + at, entries, sizeof entries, client.stream));
  };
  const auto use = [&](size_t at, uint32_t first) {
    client.disperse(drive_out(client));
    mix_through(client, sum, tables + at, 2);
    mix_on_host(wanted, filled(1000 * first));
    mix_on_host(wanted, filled(1000 * (first + 1)));
  };
  write(0, 0);
  write(kTableBytes / 2, 2);
  use(0, 0);
  use(kTableBytes / 2, 2);
  write(0, 4);
  use(0, 4);
  // Given by a struct by value, too.
  client.style = Style::kExtra;
  use(kTableBytes / 2, 2);
  client.expect(sum, wanted);
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  CHECK_CUDA(client.cuda.cuMemFreeAsync(tables, client.stream));
  client.disperse(buffers);
}

// Two threads use such tables, and free and write them anew, while they want each other's room.
void in_threads(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  std::vector<std::thread> threads;
  for (uint32_t seed = 1; seed <= 2; ++seed) {
    threads.emplace_back([&, seed] {
      Client own = client;
      CHECK_CUDA(own.cuda.cuCtxSetCurrent(own.context));
      own.stream = new_stream(own);
      OwnPool pool(own);
      const CUdeviceptr sum = own.allocate();
      own.fill(sum, seed);
      std::vector<uint32_t> wanted = filled(seed);
      for (uint32_t i = 0; i < 10; ++i) {
        const uint32_t first = (seed * 7 + 3 * i) % (kCrowd - 1);
        const CUdeviceptr entries[2] = {buffers[first], buffers[first + 1]};
        const CUdeviceptr table = pool.allocate(kTableBytes);
        CHECK_CUDA(own.cuda.cuMemcpyHtoDAsync(table, entries, sizeof entries, own.stream));
        mix_through(own, sum, table, 2);
        CHECK_CUDA(own.cuda.cuMemFreeAsync(table, own.stream));
        mix_on_host(wanted, filled(1000 * first));
        mix_on_host(wanted, filled(1000 * (first + 1)));
      }
      own.expect(sum, wanted);
    });
  }
  for (std::thread& thread : threads) thread.join();
  client.disperse(buffers);
}

// The copy is captured: what the table holds at a launch is named by it. And a captured kernel uses
// one that is written outside, before the capture and between launches.
void captured(Client& client, bool copy_captured) {
  const Graphs graphs(client);
  client.stream = new_stream(client);
  OwnPool pool(client);
  const CUdeviceptr table = pool.allocate(kTableBytes);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  const CUdeviceptr sum = client.allocate();
  client.fill(sum, 3);
  auto* entries = static_cast<CUdeviceptr*>(host_page(client));
  const auto write = [&] {
    CHECK_CUDA(client.cuda.cuMemcpyHtoDAsync(table, entries, 16, client.stream));
  };
  entries[0] = buffers[0];
  entries[1] = buffers[1];
  if (!copy_captured) write();
  CHECK_CUDA(graphs.begin(client.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  if (copy_captured) write();
  mix_through(client, sum, table, 2);
  CUgraph graph = nullptr;
  CHECK_CUDA(graphs.end(client.stream, &graph));
  const CUgraphExec exec = graphs.instance(graph);
  std::vector<uint32_t> wanted = filled(3);
  for (uint32_t i = 0; i < 8; i += 2) {
    client.disperse(drive_out(client));
    if (i != 0) {
      entries[0] = buffers[i];
      entries[1] = buffers[i + 1];
      if (!copy_captured) write();
    }
    CHECK_CUDA(graphs.launch(exec, client.stream));
    mix_on_host(wanted, filled(1000 * i));
    mix_on_host(wanted, filled(1000 * (i + 1)));
  }
  client.expect(sum, wanted);
  CHECK_CUDA(graphs.destroy_exec(exec));
  CHECK_CUDA(graphs.destroy(graph));
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  client.disperse(buffers);
}
void captured_copy(Client& client) {
  captured(client, true);
}
void captured_use(Client& client) {
  captured(client, false);
}

}  // namespace

const std::vector<Scenario> kForeignTableScenarios = {
    {"table-in-own-pool", &in_own_pool},
    {"tables-in-own-pools", &in_threads},
    {"captured-table-in-own-pool", &captured_copy},
    {"captured-use-of-own-pool", &captured_use},
};

}  // namespace clients
