// SPDX-License-Identifier: Apache-2.0
// Memory that is wanted by several at once, that is not enough, or that is freed by somebody else.

#include <atomic>
#include <cstdio>
#include <latch>
#include <memory>
#include <thread>

#include "tests/clients/client.h"

namespace clients {
namespace {

constexpr uint32_t kCrowd = 20;
constexpr size_t kEntries = 4093;

// The argument of the kernel mix_struct.
struct Table {
  uint32_t count = 0;
  uint32_t unused = 0;
  CUdeviceptr at[kEntries] = {};
};
constexpr size_t kPlaces[] = {0, 17, 1000, 4092};

void look_at_all(Client& client, const std::vector<CUdeviceptr>& buffers) {
  for (size_t i = 0; i < buffers.size(); ++i)
    client.expect(buffers[i], filled(static_cast<uint32_t>(1000 * i)));
}

void mix_four(Client& client, CUdeviceptr sum, const CUdeviceptr* four, uint32_t words) {
  auto table = std::make_unique<Table>();
  table->count = words;
  for (size_t i = 0; i < 4; ++i) table->at[kPlaces[i]] = four[i];
  client.launch(client.function("mix_struct"), {&sum, table.get()}, {8, sizeof(Table)});
}

// A thread of its own, in the client's context and with a stream of its own.
template <typename Work>
std::thread on_a_thread(const Client& client, Work work) {
  return std::thread([own = client, work]() mutable {
    CHECK_CUDA(own.cuda.cuCtxSetCurrent(own.context));
    CHECK_CUDA(own.cuda.cuStreamCreate(&own.stream, CU_STREAM_NON_BLOCKING));
    work(own);
    CHECK_CUDA(own.cuda.cuStreamSynchronize(own.stream));
    CHECK_CUDA(own.cuda.cuStreamDestroy(own.stream));
  });
}

// Each operation of two threads needs half of all the memory there is, at the same time.
void half_each(Client& client) {
  constexpr uint32_t kOps = 30;
  std::latch both(2);  // one after the other, they fit
  const auto work = [&both](Client& own) {
    const std::vector<CUdeviceptr> buffers = own.crowd(8);
    both.arrive_and_wait();
    CUdeviceptr sum = own.allocate();
    own.fill(sum, 3);
    std::vector<uint32_t> wanted = filled(3);
    for (uint32_t op = 0; op < kOps; ++op) {
      CUdeviceptr four[4];
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t which = (3 * op + 2 * i) % 8;
        four[i] = buffers[which];
        mix_on_host(wanted, filled(1000 * which));
      }
      mix_four(own, sum, four, kWords);
    }
    own.expect(sum, wanted);
    look_at_all(own, buffers);
    own.disperse(buffers);
    own.free(sum);
  };
  std::thread first = on_a_thread(client, work);
  std::thread second = on_a_thread(client, work);
  first.join();
  second.join();
}

// One operation that names more than there is.
void op_over_the_limit(Client& client) {
  constexpr uint32_t kLarge = 4 * kWords;
  CUdeviceptr sum = client.allocate(kLarge * sizeof(uint32_t));
  client.fill(sum, 3, kLarge);
  std::vector<uint32_t> wanted = filled(3, kLarge);
  CUdeviceptr four[4];
  for (uint32_t i = 0; i < 4; ++i) {
    four[i] = client.allocate(kLarge * sizeof(uint32_t));
    client.fill(four[i], 1000 * i, kLarge);
    mix_on_host(wanted, filled(1000 * i, kLarge));
  }
  mix_four(client, sum, four, kLarge);
  client.expect(sum, wanted);
  // And again with the same, in which the sum has become one of those that are read.
  mix_four(client, four[0], &four[0], 0);
  for (uint32_t i = 0; i < 4; ++i) client.expect(four[i], filled(1000 * i, kLarge));
  for (const CUdeviceptr at : four) client.free(at);
  client.free(sum);
}

// The same where nothing can be used in place: the driver's code, and nothing is lost.
void op_refused(Client& client) {
  constexpr uint32_t kLarge = 4 * kWords;
  auto table = std::make_unique<Table>();
  table->count = kLarge;
  std::vector<CUdeviceptr> four(4);
  for (uint32_t i = 0; i < 4; ++i) {
    four[i] = client.allocate(kLarge * sizeof(uint32_t));
    client.fill(four[i], 1000 * i, kLarge);
    table->at[kPlaces[i]] = four[i];
  }
  void* arguments[] = {&four[0], table.get()};
  CHECK_RESULT(client.cuda.cuLaunchKernel(client.function("mix_struct"), 4, 1, 1, 64, 1, 1, 0,
                                          client.stream, arguments, nullptr),
               CUDA_ERROR_OUT_OF_MEMORY);
  for (uint32_t i = 0; i < 4; ++i) client.expect(four[i], filled(1000 * i, kLarge));
  for (const CUdeviceptr at : four) client.free(at);
}

// As allocators do: what is refused is asked for again, smaller, until it is given.
void retry_with_less(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(8);
  size_t bytes = size_t{256} << 20;
  CUdeviceptr at = 0;
  int refused = 0;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  for (; bytes >= kBytes; bytes /= 2) {
    result = client.cuda.cuMemAlloc(&at, bytes);
    if (result == CUDA_SUCCESS) break;
    CHECK_RESULT(result, CUDA_ERROR_OUT_OF_MEMORY);
    ++refused;
  }
  CHECK(result == CUDA_SUCCESS && refused > 0);
  const auto words = static_cast<uint32_t>(bytes / sizeof(uint32_t));
  client.fill(at, 5, words);
  client.expect(at, filled(5, words));
  look_at_all(client, buffers);
  client.free(at);
  client.disperse(buffers);
}

// Allocates until there is no more, frees one, and goes on.
void full_to_the_brim(Client& client) {
  std::vector<CUdeviceptr> buffers;
  for (;;) {
    CUdeviceptr at = 0;
    const CUresult result = client.cuda.cuMemAlloc(&at, kBytes);
    if (result != CUDA_SUCCESS) {
      CHECK_RESULT(result, CUDA_ERROR_OUT_OF_MEMORY);
      break;
    }
    client.fill(at, static_cast<uint32_t>(1000 * buffers.size()));
    buffers.push_back(at);
  }
  CHECK(buffers.size() > 3);
  look_at_all(client, buffers);
  client.free(buffers.back());
  buffers.back() = client.allocate();
  client.fill(buffers.back(), static_cast<uint32_t>(1000 * (buffers.size() - 1)));
  look_at_all(client, buffers);
  client.disperse(buffers);
}

// What one thread has made and used another one frees, while the first goes on; in both ways.
void freed_by_another_thread(Client& client) {
  constexpr uint32_t kTurns = 60;
  std::vector<std::atomic<CUdeviceptr>> handed(kTurns);
  CUevent used[kTurns];
  for (CUevent& event : used)
    CHECK_CUDA(client.cuda.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CHECK_CUDA(client.cuda.cuStreamSynchronize(client.stream));
  std::thread maker = on_a_thread(client, [&](Client& own) {
    const CUdeviceptr sum = own.allocate();
    own.fill(sum, 9);
    std::vector<uint32_t> wanted = filled(9);
    for (uint32_t turn = 0; turn < kTurns; ++turn) {
      const CUdeviceptr scratch = own.allocate();
      own.fill(scratch, 77 * turn);
      own.mix(sum, scratch);
      own.mix(sum, buffers[turn % kCrowd]);
      mix_on_host(wanted, filled(77 * turn));
      mix_on_host(wanted, filled(1000 * (turn % kCrowd)));
      CHECK_CUDA(own.cuda.cuEventRecord(used[turn], own.stream));
      handed[turn].store(scratch, std::memory_order_release);
    }
    own.expect(sum, wanted);
    own.free(sum);
  });
  std::thread freer = on_a_thread(client, [&](Client& own) {
    for (uint32_t turn = 0; turn < kTurns; ++turn) {
      CUdeviceptr at = 0;
      while ((at = handed[turn].load(std::memory_order_acquire)) == 0) std::this_thread::yield();
      if (turn % 2 == 0) {
        own.free(at);
      } else {
        CHECK_CUDA(own.cuda.cuStreamWaitEvent(own.stream, used[turn], 0));
        CHECK_CUDA(own.cuda.cuMemFreeAsync(at, own.stream));
      }
    }
  });
  maker.join();
  freer.join();
  look_at_all(client, buffers);
  client.disperse(buffers);
}

void print_result(const char* what, CUresult result) {
  std::printf("%s: %d\n", what, result);
}

// What the driver says to frees that are wrong; with buffers away, which stay what they are.
void wrong_frees(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CUstream stream = nullptr;
  CHECK_CUDA(client.cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const auto both_ways = [&](const char* what, CUdeviceptr at) {
    std::printf("%s, ", what);
    print_result("at once", client.cuda.cuMemFree(at));
    std::printf("%s, ", what);
    print_result("in stream order", client.cuda.cuMemFreeAsync(at, stream));
  };
  both_ways("null", 0);
  both_ways("no pointer", 0x1234);
  both_ways("into a buffer", buffers[0] + 256);
  CUdeviceptr small = client.allocate(1000);
  both_ways("into a small one", small + 256);
  client.free(small);
  both_ways("a small one again", small);
  const CUdeviceptr large = client.allocate();
  client.free(large);
  both_ways("a large one again", large);
  CUdeviceptr ordered = 0;
  CHECK_CUDA(client.cuda.cuMemAllocAsync(&ordered, kBytes, stream));
  CHECK_CUDA(client.cuda.cuMemFreeAsync(ordered, stream));
  both_ways("a stream-ordered one again", ordered);
  std::vector<char> host(1000);
  both_ways("the host's", reinterpret_cast<CUdeviceptr>(host.data()));
  CUdeviceptr at = 0;
  print_result("nothing", client.cuda.cuMemAlloc(&at, 0));
  print_result("nothing in stream order", client.cuda.cuMemAllocAsync(&at, 0, stream));
  print_result("nowhere to", client.cuda.cuMemAlloc(nullptr, 16));
  look_at_all(client, buffers);
  client.disperse(buffers);
}

// Kernels follow pointers in pinned host memory, where nobody looks, to buffers that have left long
// ago: they work on the copies in host memory.
void stray_access(Client& client) {
  void* page = nullptr;
  CHECK_CUDA(client.cuda.cuMemHostAlloc(&page, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  const std::vector<CUdeviceptr> buffers = client.crowd(2 * kCrowd);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  std::this_thread::sleep_for(std::chrono::milliseconds{300});  // addresses have changed hands
  auto* table = static_cast<CUdeviceptr*>(page);
  table[0] = buffers[2];
  CUdeviceptr hidden = reinterpret_cast<CUdeviceptr>(page);
  CUdeviceptr sum = buffers.back();
  uint32_t entries = 1;
  uint32_t words = kWords;
  client.launch(client.function("mix_table"), {&sum, &hidden, &entries, &words}, {8, 8, 4, 4});
  std::vector<uint32_t> wanted = filled(1000 * (2 * kCrowd - 1));
  mix_on_host(wanted, filled(2000));
  client.expect(sum, wanted);
  // What is written there is there when the buffer is home again.
  table[0] = buffers[3];
  uint32_t seed = 777;
  client.launch(client.function("fill_table"), {&hidden, &words, &seed}, {8, 4, 4});
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  CHECK_CUDA(client.cuda.cuMemFreeHost(page));
  client.expect(buffers[2], filled(2000));
  client.expect(buffers[3], filled(777));
  client.disperse(buffers);
}

}  // namespace

const std::vector<Scenario> kShortageScenarios = {
    {"half-each", &half_each},
    {"op-over-the-limit", &op_over_the_limit},
    {"op-refused", &op_refused},
    {"retry-with-less", &retry_with_less},
    {"full-to-the-brim", &full_to_the_brim},
    {"freed-by-another-thread", &freed_by_another_thread},
    {"wrong-frees", &wrong_frees},
    {"stray-access", &stray_access},
};

}  // namespace clients
