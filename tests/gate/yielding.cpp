// SPDX-License-Identifier: Apache-2.0
// Linked into the library for races (liboffload-yield.so): its threads give way, or sleep, at the
// engine's edges, by a generator that YIELD_SEED seeds (without it they do not). At the end the
// number of times is written to the file that YIELD_COUNT names.

#include <sched.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "interpose/engine/edges.h"

namespace offload {

namespace {

constexpr uint64_t kStep = 0x9e3779b97f4a7c15;

uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

class Yielding final : public EdgeWatcher {
 public:
  Yielding() {
    const char* seed = std::getenv("YIELD_SEED");
    if (seed == nullptr) return;
    seed_ = std::strtoull(seed, nullptr, 10);
    watch_edges(this);
  }

  // Sleeps are rare and long against an op, giving way is common.
  void at(Edge edge) override {
    thread_local uint64_t state = mix(seed_ * 64 + threads_.fetch_add(1));
    const uint64_t chance = mix(state += kStep);
    const uint64_t most = edge == Edge::kWantMutex || edge == Edge::kHasMutex ? 4096 : 1024;
    if (chance % most == 0) {
      const timespec pause{0, static_cast<long>((chance >> 32) % 200'000)};
      nanosleep(&pause, nullptr);
    } else if (chance % 8 == 0 || edge == Edge::kScan) {
      sched_yield();
    } else {
      return;
    }
    gave_way_.fetch_add(1, std::memory_order_relaxed);
  }

  void tell() const {
    const char* path = std::getenv("YIELD_COUNT");
    FILE* file = path != nullptr ? std::fopen(path, "w") : nullptr;
    if (file == nullptr) return;
    std::fprintf(file, "%llu\n", static_cast<unsigned long long>(gave_way_.load()));
    std::fclose(file);
  }

 private:
  uint64_t seed_ = 1;
  std::atomic<uint64_t> threads_{0};
  std::atomic<uint64_t> gave_way_{0};
};

// Never destroyed: threads run until the process is gone.
Yielding& yielding() {
  alignas(Yielding) static unsigned char storage[sizeof(Yielding)];
  static auto* const only = new (storage) Yielding;
  return *only;
}

__attribute__((constructor)) void begin() {
  yielding();
}
__attribute__((destructor)) void end() {
  yielding().tell();
}

}  // namespace

}  // namespace offload
