// SPDX-License-Identifier: Apache-2.0
// What goes from one device to the other in ways of its own: threads that name memory of both while
// others name memory of one, graphs, tables of pointers, flags, copies of rectangles.

#include <atomic>
#include <thread>

#include "tests/clients/several.h"

namespace clients {
namespace {

// The second device, which may use the first one's memory, and the other way round.
Client neighbour(Client& client) {
  Client other = client;
  other.start(1);
  other.stream = new_stream(other);
  CHECK_CUDA(let_see(other, client));
  CHECK_CUDA(let_see(client, other));
  enter(client);
  client.stream = new_stream(client);
  return other;
}

// Adds up what is shared, and a stash of its own that does not fit beside it, on its device.
void add_up(Client own, const std::vector<CUdeviceptr>& shared, uint32_t seed) {
  enter(own);
  own.stream = new_stream(own);
  for (int step = 0; step < 2; ++step) {
    const CUdeviceptr sum = own.allocate();
    own.fill(sum, seed);
    std::vector<uint32_t> wanted = filled(seed);
    const std::vector<CUdeviceptr> stash = own.crowd(5);
    for (uint32_t i = 0; i < shared.size(); ++i) {
      own.mix(sum, shared[i]);
      mix_on_host(wanted, filled(1000 * (i % kCrowd)));
      own.mix(sum, stash[i % 5]);
      mix_on_host(wanted, filled(1000 * (i % 5)));
    }
    own.expect(sum, wanted);
    own.disperse(stash);
    own.free(sum);
  }
}

// Each device is used by a thread that names its memory only, and by two that name the other's,
// too. All make room all the time, and none waits for ever.
void crossed_threads(Client& client) {
  Client other = neighbour(client);
  const std::vector<CUdeviceptr> here = client.crowd(kCrowd);
  enter(other);
  const std::vector<CUdeviceptr> there = other.crowd(kCrowd);
  CHECK_CUDA(other.cuda.cuCtxSynchronize());
  enter(client);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  std::vector<CUdeviceptr> both = here;
  both.insert(both.end(), there.begin(), there.end());
  std::vector<std::thread> threads;
  threads.emplace_back([&] { add_up(client, here, 1); });
  threads.emplace_back([&] { add_up(other, there, 2); });
  for (uint32_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] { add_up(client, both, 3 + i); });
    threads.emplace_back([&, i] { add_up(other, both, 5 + i); });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(here[i], filled(1000 * i));
  client.disperse(here);
  enter(other);
  other.disperse(there);
}

// Each of two threads uses a buffer of its own device with one of the other's, at the same moment,
// and each device has room for one buffer: whoever began with half of what he needs, while the
// other has the other half, would wait for ever.
void crossed_halves(Client& client) {
  constexpr uint32_t kRounds = 200;
  Client other = neighbour(client);
  Client* const clients[] = {&client, &other};
  std::vector<CUdeviceptr> buffers[2];
  for (int at = 0; at < 2; ++at) {
    enter(*clients[at]);
    buffers[at] = clients[at]->crowd(3);
    CHECK_CUDA(clients[at]->cuda.cuCtxSynchronize());
  }
  std::atomic<uint32_t> arrived{0};
  std::vector<std::thread> threads;
  for (int at = 0; at < 2; ++at) {
    threads.emplace_back([&, at] {
      Client own = *clients[at];
      enter(own);
      own.stream = new_stream(own);
      for (uint32_t i = 0; i < kRounds; ++i) {
        own.mix(buffers[at][0], buffers[at][0]);
        ++arrived;
        while (arrived.load() < 2 * (i + 1)) std::this_thread::yield();
        own.mix(buffers[at][0], buffers[1 - at][1 + i % 2]);
      }
      std::vector<uint32_t> wanted = filled(0);
      for (uint32_t i = 0; i < kRounds; ++i) {
        mix_on_host(wanted, std::vector<uint32_t>(wanted));
        mix_on_host(wanted, filled(1000 * (1 + i % 2)));
      }
      own.expect(buffers[at][0], wanted);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int at = 0; at < 2; ++at) {
    enter(*clients[at]);
    clients[at]->disperse(buffers[at]);
  }
}

// A graph whose nodes name memory of both, launched while all else leaves and comes back; some of
// what it names is freed meanwhile.
void graph_over_devices(Client& client) {
  Client other = neighbour(client);
  const Graphs graphs(client);
  const std::vector<CUdeviceptr> here = client.crowd(kCrowd);
  std::vector<std::vector<uint32_t>> wanted_here = crowd_on_host();
  enter(other);
  const std::vector<CUdeviceptr> there = other.crowd(kCrowd);
  std::vector<std::vector<uint32_t>> wanted_there = crowd_on_host();
  order(client, other);
  CHECK_CUDA(other.cuda.cuCtxSynchronize());
  const CUdeviceptr doomed = other.allocate();
  other.fill(doomed, 3);
  CHECK_CUDA(other.cuda.cuCtxSynchronize());
  CHECK_CUDA(graphs.begin(other.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  other.mix(there[0], here[0]);
  other.mix(here[1], there[1]);
  CHECK_CUDA(client.cuda.cuMemcpyAsync(there[2], here[2], kBytes, other.stream));
  other.mix(there[3], doomed);
  CUgraph graph = nullptr;
  CHECK_CUDA(graphs.end(other.stream, &graph));
  const CUgraphExec exec = graphs.instance(graph);
  CHECK_CUDA(graphs.destroy(graph));
  for (int step = 0; step < 3; ++step) {
    enter(other);
    CHECK_CUDA(graphs.launch(exec, other.stream));
    mix_on_host(wanted_there[0], wanted_here[0]);
    mix_on_host(wanted_here[1], wanted_there[1]);
    wanted_there[2] = wanted_here[2];
    mix_on_host(wanted_there[3], filled(3));
    if (step == 1) CHECK_CUDA(other.cuda.cuMemFreeAsync(doomed, other.stream));
    for (uint32_t i = 4; i < kCrowd; ++i) {
      other.mix(there[i], here[i]);
      mix_on_host(wanted_there[i], wanted_here[i]);
    }
    order(other, client);
    for (uint32_t i = 4; i < kCrowd; ++i) {
      client.mix(here[i], there[0]);
      mix_on_host(wanted_here[i], wanted_there[0]);
    }
    order(client, other);
  }
  expect_all(other, there, wanted_there);
  CHECK_CUDA(graphs.destroy_exec(exec));
  expect_all(client, here, wanted_here);
  client.disperse(here);
  enter(other);
  other.disperse(there);
}

// A table on one device that names memory of the other, written by the host, and copied from there.
void table_of_other_device(Client& client) {
  Client other = neighbour(client);
  for (const size_t table_bytes : {size_t{4096}, kBytes}) {
    enter(client);
    const std::vector<CUdeviceptr> here = client.crowd(kCrowd);
    CHECK_CUDA(client.cuda.cuCtxSynchronize());
    const CUdeviceptr first = client.allocate(table_bytes);
    enter(other);
    const std::vector<CUdeviceptr> there = other.crowd(kCrowd);
    const CUdeviceptr table = other.allocate(table_bytes);
    const CUdeviceptr second = other.allocate(table_bytes);
    const std::vector<CUdeviceptr> entries = {here[0], there[1], here[2], there[3]};
    const size_t bytes = entries.size() * sizeof(CUdeviceptr);
    CHECK_CUDA(client.cuda.cuMemcpyHtoD(table, entries.data(), bytes));
    enter(client);
    CHECK_CUDA(client.cuda.cuMemcpyHtoD(first, entries.data(), bytes));
    CHECK_CUDA(client.cuda.cuCtxSynchronize());
    enter(other);
    CHECK_CUDA(client.cuda.cuMemcpyAsync(second, first, bytes, other.stream));
    uint32_t words = kWords;
    uint32_t count = 4;
    for (CUdeviceptr at : {table, second}) {
      enter(client);
      const std::vector<CUdeviceptr> more = client.crowd(kCrowd);
      client.disperse(more);
      enter(other);
      const std::vector<CUdeviceptr> more_there = other.crowd(kCrowd);
      other.disperse(more_there);
      CUdeviceptr sum = other.allocate();
      other.fill(sum, 5);
      std::vector<uint32_t> wanted = filled(5);
      other.launch(other.function("mix_table"), {&sum, &at, &count, &words}, {8, 8, 4, 4});
      for (uint32_t i = 0; i < count; ++i) mix_on_host(wanted, filled(1000 * i));
      other.expect(sum, wanted);
      other.free(sum);
    }
    other.disperse(there);
    other.free(table);
    other.free(second);
    enter(client);
    client.disperse(here);
    client.free(first);
  }
}

// A stream of the second device stands behind one of the first that waits for a flag, which the
// host sets only once it has made room on the second.
void flag_on_other_device(Client& client) {
  Client other = neighbour(client);
  void* page = nullptr;
  CHECK_CUDA(client.cuda.cuMemHostAlloc(&page, 4096,
                                        CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE));
  auto* flag = static_cast<volatile uint32_t*>(page);
  *flag = 0;
  const CUdeviceptr here = client.allocate();
  client.fill(here, 3);
  enter(other);
  other.disperse(other.crowd(2 * kCrowd));  // behind the flag no host memory may be pinned
  const CUdeviceptr behind = other.allocate();
  const std::vector<CUdeviceptr> early = other.crowd(4);
  enter(client);
  CHECK_CUDA(client.cuda.cuStreamWaitValue32(client.stream, reinterpret_cast<CUdeviceptr>(page), 1,
                                             CU_STREAM_WAIT_VALUE_EQ));
  order(client, other);
  other.fill(behind, 4);
  other.mix(behind, here);
  for (const CUdeviceptr at : early) other.mix(behind, at);
  const CUstream stands = other.stream;
  other.stream = new_stream(other);
  const std::vector<CUdeviceptr> buffers = other.crowd(kCrowd);
  for (uint32_t i = 0; i < kCrowd; ++i) other.expect(buffers[i], filled(1000 * i));
  *flag = 1;
  CHECK_CUDA(client.cuda.cuStreamSynchronize(stands));
  std::vector<uint32_t> wanted = filled(4);
  mix_on_host(wanted, filled(3));
  for (uint32_t i = 0; i < 4; ++i) mix_on_host(wanted, filled(1000 * i));
  other.expect(behind, wanted);
  other.disperse(buffers);
  other.disperse(early);
}

// An entry that liboffload does not know: both devices' buffers come home, and stay.
void unknown_entry_on_devices(Client& client) {
  Client other = neighbour(client);
  const std::vector<CUdeviceptr> here = client.crowd(kCrowd);
  enter(other);
  const std::vector<CUdeviceptr> there = other.crowd(kCrowd);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  const auto unknown = reinterpret_cast<CUresult (*)()>(client.cuda.other("cuSimgpuUnknownA"));
  CHECK(unknown != nullptr);
  unknown();
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  for (Client* each : {&client, &other}) {
    enter(*each);
    CHECK_CUDA(client.cuda.cuMemGetInfo(&free_bytes, &total_bytes));
    CHECK(total_bytes >= kCrowd * kBytes);
  }
  enter(client);
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(here[i], filled(1000 * i));
  client.disperse(here);
  enter(other);
  for (uint32_t i = 0; i < kCrowd; ++i) other.expect(there[i], filled(1000 * i));
  other.disperse(there);
}

}  // namespace

const std::vector<Scenario> kCrossingScenarios = {
    {"crossed-threads", &crossed_threads},
    {"crossed-halves", &crossed_halves},
    {"graph-over-devices", &graph_over_devices},
    {"table-of-other-device", &table_of_other_device},
    {"flag-on-other-device", &flag_on_other_device},
    {"unknown-entry-on-devices", &unknown_entry_on_devices},
};

}  // namespace clients
