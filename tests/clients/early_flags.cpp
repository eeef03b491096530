// SPDX-License-Identifier: Apache-2.0
// Flags that streams wait for where the engine learns of them late or by roundabout ways: before
// the first allocation, on streams of contexts and devices that are not managed (yet), beside a
// capture, on a per-thread stream; and calls that stand in the driver behind one, with buffers that
// others would need.

#include <atomic>
#include <random>
#include <thread>

#include "tests/clients/several.h"

namespace clients {
namespace {

// A word that streams can wait for, and the host sets.
struct Flag {
  explicit Flag(Client& client) {
    void* page = nullptr;
    CHECK_CUDA(client.cuda.cuMemHostAlloc(&page, 4096,
                                          CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE));
    word = static_cast<volatile uint32_t*>(page);
    *word = 0;
  }
  void stop(Client& client) const {
    CHECK_CUDA(client.cuda.cuStreamWaitValue32(client.stream, reinterpret_cast<CUdeviceptr>(word),
                                               1, CU_STREAM_WAIT_VALUE_EQ));
  }
  // The same by a host function.
  void stop_by_function(Client& client) const {
    const CUhostFn wait = [](void* word_of) {
      const auto* value = static_cast<volatile uint32_t*>(word_of);
      while (*value == 0) std::this_thread::yield();
    };
    CHECK_CUDA(client.cuda.cuLaunchHostFunc(client.stream, wait, const_cast<uint32_t*>(word)));
  }
  void set() const { *word = 1; }

  volatile uint32_t* word;
};

// What the stream is given stands behind the flag. Room for much else is made on others, before the
// flag is set.
void work_beside(Client& client, const Flag& flag) {
  enter(client);
  const CUstream stands = client.stream;
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> early = client.crowd(4);
  CHECK_CUDA(client.cuda.cuStreamSynchronize(client.stream));
  client.stream = stands;
  for (uint32_t i = 1; i < 4; ++i) client.mix(early[0], early[i]);
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  flag.set();
  CHECK_CUDA(client.cuda.cuStreamSynchronize(stands));
  std::vector<uint32_t> wanted = filled(0);
  for (uint32_t i = 1; i < 4; ++i) mix_on_host(wanted, filled(1000 * i));
  client.expect(early[0], wanted);
  client.disperse(buffers);
  client.disperse(early);
}

void flag_first(Client& client) {
  const Flag flag(client);
  client.stream = new_stream(client);
  flag.stop(client);
  work_beside(client, flag);
}

void host_function_first(Client& client) {
  const Flag flag(client);
  client.stream = new_stream(client);
  flag.stop_by_function(client);
  work_beside(client, flag);
}

// A stream of ours stands behind one of another context, which had nothing to do with our memory.
void behind_other(Client& client, Client& other) {
  const Flag flag(client);
  enter(other);
  other.stream = new_stream(other);
  flag.stop(other);
  order(other, client);
  work_beside(client, flag);
}

void begin_to_work(Client& client) {
  client.stream = new_stream(client);
  client.disperse(client.crowd(2));
  CHECK_CUDA(client.cuda.cuStreamSynchronize(client.stream));
}

void flag_in_other_context(Client& client) {
  begin_to_work(client);
  Client other = client;
  CHECK_CUDA(other.cuda.cuCtxCreate(&other.context, nullptr, 0, client.device));
  behind_other(client, other);
}

void flag_on_idle_device(Client& client) {
  begin_to_work(client);
  Client other = client;
  other.start(1);
  behind_other(client, other);
}

// One thread fills the queue of a stream that waits for the flag, until it stands in the driver.
// The first allocation is made only then, by the thread that sets the flag. `before`: what is in
// the queue first, so that either of what the program and liboffload put there meets its end.
void full_queue(Client& client, int before) {
  constexpr int kMoreThanFit = 1500;
  const Flag flag(client);
  client.stream = new_stream(client);
  const CUevent event = new_event(client);
  std::atomic<int> given{0};
  std::thread filler([&] {
    enter(client);
    flag.stop(client);
    for (int i = 0; i < before; ++i) CHECK_CUDA(client.cuda.cuEventRecord(event, client.stream));
    for (int i = 0; i < kMoreThanFit; ++i, ++given)
      CHECK_CUDA(client.cuda.cuLaunchHostFunc(
          client.stream, [](void*) {}, nullptr));
  });
  for (int last = -1; last != given;) {
    last = given;
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
  }
  CHECK(given < kMoreThanFit);
  const CUdeviceptr first = client.allocate();
  flag.set();
  filler.join();
  client.fill(first, 3);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  client.expect(first, filled(3));
  client.disperse(buffers);
}
void full_queue_first(Client& client) {
  full_queue(client, 0);
}
void full_queue_and_one_first(Client& client) {
  full_queue(client, 1);
}

// On the very stream that is used there afterwards.
void flag_on_new_device(Client& client) {
  begin_to_work(client);
  Client other = client;
  other.start(1);
  const Flag flag(other);
  other.stream = new_stream(other);
  flag.stop(other);
  work_beside(other, flag);
}

// On a stream of the first device, behind which the new one's stands.
void flag_before_device(Client& client) {
  begin_to_work(client);
  const Flag flag(client);
  flag.stop(client);
  Client other = client;
  other.start(1);
  other.stream = new_stream(other);
  order(client, other);
  work_beside(other, flag);
}

// The stream that waits captures, when the other device is used for the first time.
void device_during_capture(Client& client) {
  const Graphs graphs(client);
  const Flag flag(client);
  begin_to_work(client);
  const CUdeviceptr captured = client.allocate();
  flag.stop(client);
  CHECK_CUDA(graphs.begin(client.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  std::thread beside([&client] {
    Client other = client;
    other.start(1);
    other.stream = new_stream(other);
    const std::vector<CUdeviceptr> buffers = other.crowd(kCrowd);
    for (uint32_t i = 0; i < kCrowd; ++i) other.expect(buffers[i], filled(1000 * i));
    other.disperse(buffers);
  });
  beside.join();
  client.fill(captured, 77);
  CUgraph graph = nullptr;
  CHECK_CUDA(graphs.end(client.stream, &graph));
  CHECK(graph != nullptr);
  flag.set();
  CHECK_CUDA(client.cuda.cuStreamSynchronize(client.stream));
}

// A host function on a thread's own stream is over, and so is the thread: nothing waits for it on
// the other device, which was used for the first time meanwhile.
void per_thread_flag_before_device(Client& client) {
  const Flag flag(client);
  begin_to_work(client);
  std::atomic<bool> waits{false};
  std::thread owner([&] {
    Client own = client;
    enter(own);
    own.stream = CU_STREAM_PER_THREAD;
    flag.stop_by_function(own);
    waits = true;
    CHECK_CUDA(own.cuda.cuStreamSynchronize(CU_STREAM_PER_THREAD));
  });
  while (!waits) std::this_thread::yield();
  Client other = client;
  other.start(1);
  other.stream = new_stream(other);
  other.disperse(other.crowd(2));
  flag.set();
  owner.join();
  const std::vector<CUdeviceptr> buffers = other.crowd(kCrowd);
  for (uint32_t i = 0; i < kCrowd; ++i) other.expect(buffers[i], filled(1000 * i));
  other.disperse(buffers);
}

// One thread stands in the driver, in a copy behind a host function which waits for an operation
// that another thread submits. What this one needs could only have the copy's memory.
void copy_behind_flag(Client& client) {
  constexpr size_t kLarge = 6 * kBytes;
  const Flag flag(client);
  client.stream = new_stream(client);
  Client blocking = client;
  CHECK_CUDA(client.cuda.cuStreamCreate(&blocking.stream, CU_STREAM_DEFAULT));
  const CUdeviceptr copied = client.allocate(kLarge);
  const CUdeviceptr away = client.allocate(kLarge);
  client.fill(away, 9);
  client.fill(copied, 7);
  CHECK_CUDA(client.cuda.cuStreamSynchronize(client.stream));
  flag.stop_by_function(blocking);
  std::atomic<bool> copies{false};
  std::thread beside([&] {
    enter(client);
    copies = true;
    CHECK(client.read(copied) == filled(7));
  });
  while (!copies) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds{100});
  client.fill(away, 11);
  flag.set();
  beside.join();
  CHECK_CUDA(client.cuda.cuStreamSynchronize(client.stream));
  client.expect(away, filled(11));
}

// Two threads with buffers of two sizes: what one gathers, or waits to have in another size, is not
// there for the other, which is not refused for that.
void two_sizes_in_threads(Client& client) {
  constexpr uint32_t kShared = 5;
  const std::vector<CUdeviceptr> shared = client.crowd(kShared);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  std::vector<std::thread> threads;
  for (uint32_t seed = 1; seed <= 2; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      Client own = client;
      enter(own);
      own.stream = new_stream(own);
      const CUdeviceptr sum = own.allocate();
      own.fill(sum, seed);
      std::vector<uint32_t> wanted = filled(seed);
      for (uint32_t i = 0; i < 40; ++i) {
        const uint32_t from = static_cast<uint32_t>(random()) % kShared;
        own.mix(sum, shared[from]);
        mix_on_host(wanted, filled(1000 * from));
        if (random() % 3 != 0) continue;
        const CUdeviceptr passing = own.allocate(kBytes * (1 + random() % 2));
        own.fill(passing, i);
        own.mix(sum, passing);
        mix_on_host(wanted, filled(i));
        own.free(passing);
      }
      own.expect(sum, wanted);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

const std::vector<Scenario> kEarlyFlagScenarios = {
    {"flag-first", &flag_first},
    {"host-function-first", &host_function_first},
    {"full-queue-first", &full_queue_first},
    {"full-queue-and-one-first", &full_queue_and_one_first},
    {"flag-in-other-context", &flag_in_other_context},
    {"flag-on-idle-device", &flag_on_idle_device},
    {"flag-on-new-device", &flag_on_new_device},
    {"flag-before-device", &flag_before_device},
    {"device-during-capture", &device_during_capture},
    {"per-thread-flag-before-device", &per_thread_flag_before_device},
    {"copy-behind-flag", &copy_behind_flag},
    {"two-sizes-in-threads", &two_sizes_in_threads},
};

}  // namespace clients
