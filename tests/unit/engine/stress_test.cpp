// SPDX-License-Identifier: Apache-2.0
// Host threads that really run at once, over a device that does everything at once: for the
// sanitizers, and for what only real threads meet.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "interpose/engine/engine.h"
#include "policies/pressure.h"
#include "profiler/base/log.h"
#include "tests/unit/engine/arena_heap.h"
#include "tests/unit/engine/model/failure.h"
#include "tests/unit/engine/model/inspect.h"
#include "tests/unit/engine/model/port.h"
#include "tests/unit/engine/model/schedules.h"
#include "tests/unit/engine/model/world.h"

namespace offload::model {
namespace {

// The model is for one thread at a time.
class LockedPort final : public Port {
 public:
  explicit LockedPort(ModelPort& port) : port_(port) {}
  std::mutex& mutex() { return mutex_; }

  Status reserve(uint64_t bytes, Address* out) override {
    const Lock lock(mutex_);
    return port_.reserve(bytes, out);
  }
  Status create(Place place, uint64_t bytes, Handle* out) override {
    const Lock lock(mutex_);
    return port_.create(place, bytes, out);
  }
  void release(Handle handle) override {
    const Lock lock(mutex_);
    port_.release(handle);
  }
  Status map(Address at, uint64_t bytes, Handle handle, Place place, bool cpu) override {
    const Lock lock(mutex_);
    return port_.map(at, bytes, handle, place, cpu);
  }
  Status unmap(Address at, uint64_t bytes) override {
    const Lock lock(mutex_);
    return port_.unmap(at, bytes);
  }
  Status allocate_pinned(uint64_t bytes, Address* out) override {
    const Lock lock(mutex_);
    return port_.allocate_pinned(bytes, out);
  }
  void free_pinned(Address at) override {
    const Lock lock(mutex_);
    port_.free_pinned(at);
  }
  Status create_event(void* context, bool timed, Event* out) override {
    const Lock lock(mutex_);
    return port_.create_event(context, timed, out);
  }
  void destroy_event(Event event) override {
    const Lock lock(mutex_);
    port_.destroy_event(event);
  }
  Status record(Event event, const NativeStream& stream) override {
    const Lock lock(mutex_);
    return port_.record(event, stream);
  }
  Status wait(const NativeStream& stream, Event event) override {
    const Lock lock(mutex_);
    return port_.wait(stream, event);
  }
  Status query(Event event) override {
    const Lock lock(mutex_);
    return port_.query(event);
  }
  Status synchronize(Event event) override {
    const Lock lock(mutex_);
    return port_.synchronize(event);
  }
  Status elapsed(Event begin, Event end, uint64_t* nanoseconds) override {
    const Lock lock(mutex_);
    return port_.elapsed(begin, end, nanoseconds);
  }
  Status synchronize_stream(const NativeStream& stream) override {
    const Lock lock(mutex_);
    return port_.synchronize_stream(stream);
  }
  NativeStream lane(Lane lane) override {
    const Lock lock(mutex_);
    return port_.lane(lane);
  }
  Status copy(Lane lane, Address to, Address from, uint64_t bytes) override {
    const Lock lock(mutex_);
    return port_.copy(lane, to, from, bytes);
  }
  uint64_t checksum_host(Address at, uint64_t bytes) override {
    const Lock lock(mutex_);
    return port_.checksum_host(at, bytes);
  }
  Status checksum_device(Address at, uint64_t bytes, uint64_t* out) override {
    const Lock lock(mutex_);
    return port_.checksum_device(at, bytes, out);
  }
  uint64_t now_nanoseconds() override {
    const Lock lock(mutex_);
    return port_.now_nanoseconds();
  }

 private:
  using Lock = std::lock_guard<std::mutex>;
  ModelPort& port_;
  std::mutex mutex_;
};

class Stress {
 public:
  static constexpr uint64_t kDeviceGranules = 40;

  Stress()
      : device_(kDeviceGranules * kGranule, eager_),
        model_(device_, crew_),
        port_(model_),
        policy_({.alpha = 0.2, .min_size_bytes = 1}),
        statistics_(std::make_unique<Statistics>()) {
    EngineConfig config;
    config.granularity = kGranule;
    config.limit_bytes = kDeviceGranules * kGranule;
    config.host_limit_bytes = 400 * kGranule;
    config.min_size_bytes = kGranule;
    config.slot_chunk_bytes = 8 * kGranule;
    config.grace_ops = 4;
    config.largest_extent_granules = 4;
    config.copy_piece_bytes = 2 * kGranule;
    engine_ = std::make_unique<Engine>(port_, config, policy_, *statistics_);
    EXPECT_EQ(engine_->initialise(), Status::kOk);
  }
  ~Stress() {
    engine_.reset();
    free_own_heap();
  }

  struct Tensor {
    Address address;
    uint64_t bytes;
    uint64_t value;  // 0: not written
  };

  void thread(uint64_t seed, int steps) {
    std::mt19937_64 random(seed);
    ThreadPins& pins = *engine_->pin_registry().acquire();
    Queue* queue = nullptr;
    {
      const std::lock_guard<std::mutex> lock(port_.mutex());
      queue = device_.add_queue("stream", false);
    }
    const StreamIndex stream = engine_->stream({queue, nullptr}, 1000 + seed, false);
    std::vector<Tensor> mine;
    for (int i = 0; i < steps; ++i) {
      const uint64_t what = random() % 10;
      if (what < 3 && mine.size() < 12) {  // more than the device holds, whoever runs meanwhile
        Tensor fresh{0, what == 0 ? 1024 : (1 + random() % 9) * kGranule, 0};
        const Status status =
            random() % 2 == 0 ? engine_->allocate(fresh.bytes, &pins, &fresh.address)
                              : engine_->allocate_async(fresh.bytes, stream, &pins, &fresh.address);
        if (status == Status::kOk) {
          mine.push_back(fresh);
        } else {
          ++refused_;
        }
      } else if (what < 5 && !mine.empty()) {
        const size_t which = random() % mine.size();
        const Address address = mine[which].address;
        mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(which));
        const Status status = random() % 2 == 0 ? engine_->free(address, &pins)
                                                : engine_->free_async(address, stream, &pins);
        if (status != Status::kOk) ++wrong_;
      } else if (!mine.empty()) {
        op(pins, stream, queue, mine[random() % mine.size()], random());
      }
      AllocationInfo info;
      engine_->describe(window_guess_ + random() % (100 * kGranule), &info);
    }
    for (const Tensor& each : mine) engine_->free_async(each.address, stream, &pins);
    engine_->stream_destroyed(nullptr, 1000 + seed);
    PinRegistry::give_back(&pins);
  }

  void worker() {
    while (!ended_) {
      engine_->worker_step();
      engine_->wait_for_work();
      uint64_t free_bytes = 0;
      uint64_t total_bytes = 0;
      engine_->memory_info(&free_bytes, &total_bytes);
    }
  }

  void end() {
    ended_ = true;
    engine_->stop_worker();
  }
  void check() {
    while (engine_->worker_step()) {
    }
    EngineTest::check(*engine_, device_.memory());
  }
  uint64_t wrong() const { return wrong_; }
  uint64_t refused() const { return refused_; }
  Statistics& statistics() { return *statistics_; }

 private:
  // Names the tensor, and by chance some that may be another thread's.
  void op(ThreadPins& pins, StreamIndex stream, Queue* queue, Tensor& tensor, uint64_t value) {
    if (window_guess_ == 0) window_guess_ = tensor.address;
    engine_->name(pins, tensor.address);
    engine_->name(pins, window_guess_ + value % (200 * kGranule));
    if (engine_->begin_op(pins, stream) != Status::kOk) {
      ++refused_;
      return;
    }
    {
      const std::lock_guard<std::mutex> lock(port_.mutex());
      device_.submit(*queue, {.run = [this, &tensor, value] { kernel(tensor, value | 1); },
                              .records = nullptr,
                              .waits_for = nullptr});
      eager_.at(Schedule::Point::kSubmit, device_);
    }
    engine_->end_op(pins, stream);
  }

  void kernel(Tensor& tensor, uint64_t value) {
    std::vector<Memory::Run> runs;
    if (!device_.memory().resolve(tensor.address, tensor.bytes, &runs)) {
      ++wrong_;
      return;
    }
    uint64_t index = 0;
    for (const Memory::Run& run : runs) {
      for (uint64_t i = 0; i < run.count; ++i, ++index) {
        if (tensor.value != 0 && run.cells[i] != mix(tensor.value, index)) ++wrong_;
        run.cells[i] = mix(value, index);
      }
    }
    tensor.value = value;
  }

  Eager eager_;
  Crew crew_;
  Device device_;
  ModelPort model_;
  LockedPort port_;
  PressurePolicy policy_;
  std::unique_ptr<Statistics> statistics_;
  std::unique_ptr<Engine> engine_;
  std::atomic<Address> window_guess_{0};
  std::atomic<uint64_t> wrong_{0};
  std::atomic<uint64_t> refused_{0};
  std::atomic<bool> ended_{false};
};

#ifdef OFFLOAD_DROPPABLE_CLAUSES

// Threads that give way, or sleep, at the engine's edges, by a seed: what they meet differs from
// what they meet when left alone.
class Yielding final : public EdgeWatcher {
 public:
  explicit Yielding(uint64_t seed) : seed_(seed) { watch_edges(this); }
  ~Yielding() override { watch_edges(nullptr); }
  void at(Edge edge) override {
    thread_local std::mt19937_64 random(seed_ * 64 + number_++);
    const uint64_t what = random() % 256;
    if (what == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
    } else if (what < 32 || edge == Edge::kScan) {
      std::this_thread::yield();
    }
  }

 private:
  uint64_t seed_;
  std::atomic<uint64_t> number_{0};
};

// STRESS_SECONDS=N plays seeds for so long, from STRESS_SEED on.
TEST(Stress, ThreadsThatGiveWay) {
  set_log_sink([](std::string_view) {});
  const char* seconds = std::getenv("STRESS_SECONDS");
  const char* first = std::getenv("STRESS_SEED");
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::seconds(seconds != nullptr ? std::atoi(seconds) : 2);
  uint64_t seed = first != nullptr ? std::strtoull(first, nullptr, 10) : 1;
  uint64_t misses = 0;
  uint64_t rounds = 0;
  for (; std::chrono::steady_clock::now() < end; ++seed, ++rounds) {
    Stress stress;
    const Yielding yielding(seed);
    std::thread worker([&] { stress.worker(); });
    std::vector<std::thread> threads;
    for (uint64_t i = 1; i <= 3; ++i) {
      threads.emplace_back([&stress, i, seed] { stress.thread(10 * seed + i, 400); });
    }
    for (std::thread& thread : threads) thread.join();
    stress.end();
    worker.join();
    ASSERT_EQ(stress.wrong(), 0u) << "STRESS_SEED=" << seed;
    stress.check();
    ASSERT_EQ(stress.statistics().live_bytes.get(), 0u) << "STRESS_SEED=" << seed;
    misses += stress.statistics().demand_misses.get();
  }
  std::printf("%llu seeds, %llu demand misses\n", static_cast<unsigned long long>(rounds),
              static_cast<unsigned long long>(misses));
  EXPECT_GT(misses, rounds);
}

#else

TEST(Stress, ThreeThreadsAndAWorker) {
  set_log_sink([](std::string_view) {});
  constexpr int kSteps = 20000;
  Stress stress;
  std::thread worker([&] { stress.worker(); });
  std::vector<std::thread> threads;
  for (uint64_t i = 1; i <= 3; ++i) {
    threads.emplace_back([&stress, i] { stress.thread(i, kSteps); });
  }
  for (std::thread& thread : threads) thread.join();
  stress.end();
  worker.join();
  EXPECT_EQ(stress.wrong(), 0u);
  EXPECT_LT(stress.refused(), 3u * kSteps / 10);
  stress.check();
  EXPECT_GT(stress.statistics().demand_misses.get(), 50u);
  EXPECT_EQ(stress.statistics().live_bytes.get(), 0u);
}

#endif

}  // namespace
}  // namespace offload::model
