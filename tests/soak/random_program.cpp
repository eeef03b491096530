// SPDX-License-Identifier: Apache-2.0
// A program by chance, over the driver: what it does depends on its seed alone, what it prints on
// what it computed. Several host threads, each with its own streams and buffers, which they hand on
// at times; every use is ordered behind the others by events, as a correct program does.
//
//   random_program --seed N --operations N [--threads N] [--live MiB] [--captures]

#include <barrier>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/clients/client.h"

namespace {

using clients::Client;

struct Options {
  uint64_t seed = 1;
  uint64_t operations = 1000;
  size_t threads = 2;
  uint64_t live_mib = 16;
  bool captures = false;
};

constexpr uint64_t kPage = 16 << 10;
constexpr uint32_t kMostPages = 12;
constexpr uint32_t kKernelWords = 1024;
constexpr uint64_t kRound = 64;  // operations between two meetings of the threads

struct Buffer {
  CUdeviceptr at = 0;
  uint64_t bytes = 0;
  bool stream_ordered = false;
  std::set<size_t> streams;  // that have used it since it was last known to be finished with
};

class Player {
 public:
  Player(Client& shared, const Options& options, size_t index)
      : client_(shared),
        options_(options),
        random_(options.seed * 1000003 + index),
        live_limit_(options.live_mib * (uint64_t{1} << 20) / options.threads) {
    CHECK_CUDA(client_.cuda.cuCtxSetCurrent(client_.context));
    for (const char* name : {"fill", "mix", "mix_table"})
      functions_.push_back(client_.function(name));
    for (int i = 0; i < 2; ++i) streams_.push_back(new_stream());
    CHECK_CUDA(client_.cuda.cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING));
  }

  void step() {
    if (buffers_.size() < 4) return allocate();
    switch (below(options_.captures ? 17 : 16)) {
      case 0:
      case 1:
      case 2:
        return live_bytes_ < live_limit_ ? allocate() : free_one();
      case 3:
        return free_one();
      case 4:
      case 5:
      case 6:
        return mix();
      case 7:
        return fill();
      case 8:
        return set();
      case 9:
      case 10:
        return copy();
      case 11:
        return copy_from_host();
      case 12:
        return look(below(buffers_.size()));
      case 13:
        return mix_by_table();
      case 14:
        return below(8) == 0 ? replace_stream() : mix();
      case 15:
        return below(8) == 0 ? synchronize() : mix();
      default:
        return below(4) == 0 ? capture() : mix();
    }
  }

  // Nothing of it is queued any more, so any thread may use it.
  Buffer give() {
    synchronize();
    Buffer given = std::move(buffers_.front());
    buffers_.erase(buffers_.begin());
    live_bytes_ -= given.bytes;
    return given;
  }
  void take(Buffer buffer) {
    live_bytes_ += buffer.bytes;
    buffers_.push_back(std::move(buffer));
  }

  uint64_t finish() {
    for (size_t i = 0; i < buffers_.size(); ++i) look(i);
    while (!buffers_.empty()) free_one();
    synchronize();
    for (CUstream stream : streams_) CHECK_CUDA(client_.cuda.cuStreamDestroy(stream));
    CHECK_CUDA(client_.cuda.cuEventDestroy(event_));
    return hash_;
  }

 private:
  uint64_t below(uint64_t limit) { return random_() % limit; }
  size_t any_stream() { return static_cast<size_t>(below(streams_.size())); }
  Buffer& any_buffer() { return buffers_[static_cast<size_t>(below(buffers_.size()))]; }

  CUstream new_stream() {
    CUstream stream = nullptr;
    CHECK_CUDA(client_.cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
  }

  // What `stream` does next with the buffer comes after all that others do.
  CUstream order(Buffer& buffer, size_t stream) {
    for (const size_t other : buffer.streams) {
      if (other == stream) continue;
      CHECK_CUDA(client_.cuda.cuEventRecord(event_, streams_[other]));
      CHECK_CUDA(client_.cuda.cuStreamWaitEvent(streams_[stream], event_, 0));
    }
    buffer.streams = {stream};
    return streams_[stream];
  }

  void allocate() {
    Buffer buffer;
    buffer.bytes = (1 + below(kMostPages)) * kPage;
    if (below(4) == 0) buffer.bytes -= below(kPage * 3 / 16) * 4;
    if (below(6) == 0) buffer.bytes = 4 * kKernelWords;
    buffer.stream_ordered = below(2) == 0;
    if (buffer.stream_ordered) {
      const size_t stream = any_stream();
      CHECK_CUDA(client_.cuda.cuMemAllocAsync(&buffer.at, buffer.bytes, streams_[stream]));
      buffer.streams = {stream};
    } else {
      CHECK_CUDA(client_.cuda.cuMemAlloc(&buffer.at, buffer.bytes));
    }
    live_bytes_ += buffer.bytes;
    buffers_.push_back(std::move(buffer));
    // Never written memory has no content that could be compared.
    Buffer& fresh = buffers_.back();
    CUstream stream = order(fresh, any_stream());
    CHECK_CUDA(client_.cuda.cuMemsetD32Async(fresh.at, static_cast<uint32_t>(random_()),
                                             fresh.bytes / 4, stream));
  }

  void free_one() {
    const size_t index = static_cast<size_t>(below(buffers_.size()));
    Buffer buffer = std::move(buffers_[index]);
    buffers_.erase(buffers_.begin() + static_cast<ptrdiff_t>(index));
    live_bytes_ -= buffer.bytes;
    if (buffer.stream_ordered) {
      CUstream stream = order(buffer, any_stream());
      CHECK_CUDA(client_.cuda.cuMemFreeAsync(buffer.at, stream));
    } else {
      CHECK_CUDA(client_.cuda.cuMemFree(buffer.at));
    }
  }

  CUdeviceptr words_in(const Buffer& buffer) {
    const uint64_t slack = buffer.bytes - 4 * kKernelWords;
    return buffer.at + below(slack / 4 + 1) * 4;
  }

  void launch(size_t function, CUstream stream, std::vector<void*> arguments) {
    CHECK_CUDA(client_.cuda.cuLaunchKernel(functions_[function], 2, 1, 1, 64, 1, 1, 0, stream,
                                           arguments.data(), nullptr));
  }

  void fill() {
    Buffer& to = any_buffer();
    CUdeviceptr at = words_in(to);
    uint32_t words = kKernelWords;
    auto seed = static_cast<uint32_t>(random_());
    launch(0, order(to, any_stream()), {&at, &words, &seed});
  }

  void mix() {
    Buffer& to = any_buffer();
    Buffer& from = any_buffer();
    const size_t stream = any_stream();
    CUdeviceptr to_words = words_in(to);
    CUdeviceptr from_words = &to == &from ? to_words : words_in(from);
    uint32_t words = kKernelWords;
    order(from, stream);
    launch(1, order(to, stream), {&to_words, &from_words, &words});
  }

  // The kernel finds the second and third buffer through a table that comes from the host.
  void mix_by_table() {
    Buffer& to = any_buffer();
    Buffer& table = any_buffer();
    Buffer& first = any_buffer();
    Buffer& second = any_buffer();
    if (&table == &to || &table == &first || &table == &second || &first == &to || &second == &to)
      return;
    const size_t stream = any_stream();
    const CUdeviceptr entries[] = {first.at, second.at};
    order(first, stream);
    order(second, stream);
    order(table, stream);
    CUstream queue = order(to, stream);
    CHECK_CUDA(client_.cuda.cuMemcpyHtoDAsync(table.at, entries, sizeof entries, queue));
    uint32_t count = 2;
    uint32_t words = kKernelWords;
    launch(2, queue, {&to.at, &table.at, &count, &words});
    CHECK_CUDA(client_.cuda.cuMemsetD32Async(table.at, 7, 4, queue));  // addresses are no results
  }

  void set() {
    Buffer& to = any_buffer();
    CHECK_CUDA(client_.cuda.cuMemsetD32Async(to.at, static_cast<uint32_t>(random_()), to.bytes / 4,
                                             order(to, any_stream())));
  }

  void copy() {
    Buffer& to = any_buffer();
    Buffer& from = any_buffer();
    if (&to == &from) return;
    const size_t stream = any_stream();
    order(from, stream);
    CHECK_CUDA(client_.cuda.cuMemcpyDtoDAsync(to.at, from.at, std::min(to.bytes, from.bytes),
                                              order(to, stream)));
  }

  void copy_from_host() {
    Buffer& to = any_buffer();
    std::vector<uint32_t> words(to.bytes / 4);
    const auto first = static_cast<uint32_t>(random_());
    for (size_t i = 0; i < words.size(); ++i)
      words[i] = first + static_cast<uint32_t>(i) * 2654435761u;
    CHECK_CUDA(
        client_.cuda.cuMemcpyHtoDAsync(to.at, words.data(), to.bytes, order(to, any_stream())));
  }

  void look(size_t index) {
    Buffer& buffer = buffers_[index];
    CUstream stream = order(buffer, any_stream());
    std::vector<uint32_t> words(buffer.bytes / 4);
    CHECK_CUDA(client_.cuda.cuMemcpyDtoHAsync(words.data(), buffer.at, words.size() * 4, stream));
    CHECK_CUDA(client_.cuda.cuStreamSynchronize(stream));
    for (const uint32_t word : words) hash_ = (hash_ ^ word) * 0x100000001b3u;
  }

  // With work on it; its handle may come back.
  void replace_stream() {
    const size_t index = any_stream();
    for (Buffer& buffer : buffers_) {
      if (buffer.streams.count(index) != 0) order(buffer, 1 - index);
    }
    CHECK_CUDA(client_.cuda.cuStreamDestroy(streams_[index]));
    streams_[index] = new_stream();
  }

  void synchronize() {
    for (CUstream stream : streams_) CHECK_CUDA(client_.cuda.cuStreamSynchronize(stream));
    for (Buffer& buffer : buffers_) buffer.streams.clear();
  }

  // Some kernels as a graph, launched now and then once more.
  void capture() {
    const auto begin = reinterpret_cast<decltype(&cuStreamBeginCapture)>(
        client_.cuda.other("cuStreamBeginCapture"));
    const auto end =
        reinterpret_cast<decltype(&cuStreamEndCapture)>(client_.cuda.other("cuStreamEndCapture"));
    const auto instantiate = reinterpret_cast<decltype(&cuGraphInstantiate)>(
        client_.cuda.other("cuGraphInstantiateWithFlags"));
    const auto run =
        reinterpret_cast<decltype(&cuGraphLaunch)>(client_.cuda.other("cuGraphLaunch"));
    const auto destroy =
        reinterpret_cast<decltype(&cuGraphDestroy)>(client_.cuda.other("cuGraphDestroy"));
    const auto destroy_instance =
        reinterpret_cast<decltype(&cuGraphExecDestroy)>(client_.cuda.other("cuGraphExecDestroy"));
    const size_t stream = any_stream();
    Buffer& to = any_buffer();
    Buffer& from = any_buffer();
    order(from, stream);
    CUstream queue = order(to, stream);
    CUdeviceptr to_words = words_in(to);
    CUdeviceptr from_words = &to == &from ? to_words : words_in(from);
    uint32_t words = kKernelWords;
    CUgraph graph = nullptr;
    CUgraphExec instance = nullptr;
    CHECK_CUDA(begin(queue, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    for (int i = 0; i < 3; ++i) launch(1, queue, {&to_words, &from_words, &words});
    CHECK_CUDA(end(queue, &graph));
    CHECK_CUDA(instantiate(&instance, graph, 0));
    for (uint64_t times = 1 + below(3); times > 0; --times) CHECK_CUDA(run(instance, queue));
    CHECK_CUDA(client_.cuda.cuStreamSynchronize(queue));
    CHECK_CUDA(destroy_instance(instance));
    CHECK_CUDA(destroy(graph));
  }

  Client& client_;
  const Options& options_;
  std::mt19937_64 random_;
  uint64_t live_limit_;
  uint64_t live_bytes_ = 0;
  uint64_t hash_ = 0xcbf29ce484222325u;
  std::vector<CUfunction> functions_;
  std::vector<CUstream> streams_;
  std::vector<Buffer> buffers_;
  CUevent event_ = nullptr;
};

uint64_t resident_kib() {
  std::ifstream status("/proc/self/statm");
  uint64_t all = 0;
  uint64_t resident = 0;
  status >> all >> resident;
  return resident * 4;
}

Options read_options(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string name = words[i];
    if (name == "--captures") {
      options.captures = true;
      continue;
    }
    if (i + 1 == count) std::exit(2);
    const uint64_t value = std::strtoull(words[++i], nullptr, 10);
    if (name == "--seed") {
      options.seed = value;
    } else if (name == "--operations") {
      options.operations = value;
    } else if (name == "--threads") {
      options.threads = static_cast<size_t>(value);
    } else if (name == "--live") {
      options.live_mib = value;
    } else {
      std::exit(2);
    }
  }
  return options;
}

}  // namespace

int main(int count, char** words) {
  const Options options = read_options(count, words);
  Client client(clients::take_road("proc"));
  client.start();
  std::vector<std::unique_ptr<Player>> players(options.threads);
  std::vector<uint64_t> hashes(options.threads);
  std::vector<Buffer> handed(options.threads);
  std::barrier meeting(static_cast<ptrdiff_t>(options.threads));
  const uint64_t rounds = (options.operations + kRound - 1) / kRound;
  uint64_t early_kib = 0;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < options.threads; ++i) {
    threads.emplace_back([&, i] {
      players[i] = std::make_unique<Player>(client, options, i);
      for (uint64_t round = 0; round < rounds; ++round) {
        for (uint64_t step = 0; step < kRound; ++step) players[i]->step();
        handed[i] = players[i]->give();
        meeting.arrive_and_wait();
        players[i]->take(std::move(handed[(i + 1) % options.threads]));
        if (i == 0 && round == rounds / 4) early_kib = resident_kib();
        meeting.arrive_and_wait();
      }
      hashes[i] = players[i]->finish();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const uint64_t late_kib = resident_kib();
  for (size_t i = 0; i < options.threads; ++i)
    std::printf("thread %zu %016" PRIx64 "\n", i, hashes[i]);
  std::fprintf(stderr, "grown KiB %" PRIu64 "\n", late_kib > early_kib ? late_kib - early_kib : 0);
  return 0;
}
