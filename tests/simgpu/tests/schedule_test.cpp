// SPDX-License-Identifier: Apache-2.0
// Schedules and the real clock: when operations take effect.
#include <algorithm>
#include <chrono>
#include <set>

#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The order in which five streams write to a list in pinned memory.
std::vector<int> order_of_streams() {
  static std::vector<int>* order = new std::vector<int>;
  static const Gpu gpu;
  const CUstream gatekeeper = new_stream();
  const CUevent opened = new_event();
  Gate gate;
  gate.close(gatekeeper);
  cuEventRecord(opened, gatekeeper);
  std::vector<CUstream> streams;
  for (intptr_t i = 0; i < 5; ++i) {
    streams.push_back(new_stream());
    cuStreamWaitEvent(streams.back(), opened, 0);
    cuLaunchHostFunc(
        streams.back(),
        [](void* index) { order->push_back(static_cast<int>(reinterpret_cast<intptr_t>(index))); },
        reinterpret_cast<void*>(i));
  }
  gate.open();
  cuCtxSynchronize();
  return *order;
}

TEST(Schedule, FifoKeepsTheOrderOfSubmission) {
  EXPECT_CLEAN(in_child({{"SIMGPU_SCHEDULE", "fifo"}}, [] {
    EXPECT_EQ(order_of_streams(), (std::vector<int>{0, 1, 2, 3, 4}));
  }));
}

TEST(Schedule, LateRunsTheYoungestStreamFirst) {
  EXPECT_CLEAN(in_child({{"SIMGPU_SCHEDULE", "late"}}, [] {
    EXPECT_EQ(order_of_streams(), (std::vector<int>{4, 3, 2, 1, 0}));
  }));
}

TEST(Schedule, RandomDependsOnItsSeed) {
  std::set<std::string> orders;
  for (int seed = 1; seed <= 6; ++seed) {
    const Outcome outcome = in_child({{"SIMGPU_SCHEDULE", "random:" + std::to_string(seed)}}, [] {
      for (const int i : order_of_streams()) std::fprintf(stderr, "%d", i);
    });
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.errors.size(), 5U);
    orders.insert(outcome.errors);
  }
  EXPECT_GE(orders.size(), 3U);
}

TEST(Schedule, LateRunsOnlyWhatIsWaitedFor) {
  EXPECT_CLEAN(in_child({{"SIMGPU_SCHEDULE", "late"}}, [] {
    Gpu gpu;
    auto* seen = static_cast<volatile uint32_t*>(allocate_pinned(16));
    for (int i = 0; i < 3; ++i) seen[i] = 0;
    const auto word = [&](int i) { return reinterpret_cast<CUdeviceptr>(seen + i); };
    const CUstream a = new_stream();
    const CUstream b = new_stream();
    const CUstream c = new_stream();
    const CUevent event = new_event();
    CU(cuMemsetD32Async(word(0), 1, 1, a));
    CU(cuEventRecord(event, a));
    CU(cuStreamWaitEvent(b, event, 0));
    CU(cuMemsetD32Async(word(1), 1, 1, b));
    CU(cuMemsetD32Async(word(2), 1, 1, c));
    CU(cuStreamSynchronize(b));
    EXPECT_EQ(seen[0], 1U);  // b needs it
    EXPECT_EQ(seen[1], 1U);
    EXPECT_EQ(seen[2], 0U);
    // Polled for in vain several times: then it counts as waited for.
    EXPECT_EQ(cuStreamQuery(c), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(cuStreamQuery(c), CUDA_ERROR_NOT_READY);
    while (cuStreamQuery(c) == CUDA_ERROR_NOT_READY) {
    }
    EXPECT_EQ(seen[2], 1U);
    // Nothing is called for a while: everything runs.
    CU(cuMemsetD32Async(word(0), 2, 1, a));
    const auto start = std::chrono::steady_clock::now();
    while (seen[0] != 2 && seconds_since(start) < 10) {
    }
    EXPECT_EQ(seen[0], 2U);
    EXPECT_GT(seconds_since(start), 0.015);
  }));
}

// The shortest of several measurements, for a busy machine only adds.
struct Times {
  float up_ms = 1e9F;
  float down_ms = 1e9F;
};

Times time_copies(CUdeviceptr up, CUdeviceptr down, char* host, size_t bytes) {
  const CUstream in = new_stream();
  const CUstream out = new_stream();
  Times best;
  for (int attempt = 0; attempt < 6; ++attempt) {
    CUevent events[4];
    for (CUevent& event : events) event = new_event(CU_EVENT_DEFAULT);
    cuEventRecord(events[0], in);
    cuEventRecord(events[1], out);
    if (up != 0) cuMemcpyHtoDAsync(up, host, bytes, in);
    if (down != 0) cuMemcpyDtoHAsync(host + bytes, down, bytes, out);
    cuEventRecord(events[2], in);
    cuEventRecord(events[3], out);
    cuCtxSynchronize();
    Times now;
    cuEventElapsedTime(&now.up_ms, events[0], events[2]);
    cuEventElapsedTime(&now.down_ms, events[1], events[3]);
    best.up_ms = std::min(best.up_ms, now.up_ms);
    best.down_ms = std::min(best.down_ms, now.down_ms);
  }
  return best;
}

// 10 MB at 1 GB/s take 10 ms; both directions at once slow each other down to 80 %.
TEST(RealClock, CopiesTakeTheirTime) {
  EXPECT_CLEAN(in_child({{"SIMGPU_CLOCK", "real"}, {"SIMGPU_H2D", "1"}, {"SIMGPU_D2H", "1"}}, [] {
    Gpu gpu;
    constexpr size_t kBytes = 10000000;
    const CUdeviceptr p = allocate(kBytes);
    const CUdeviceptr q = allocate(kBytes);
    auto* host = static_cast<char*>(allocate_pinned(2 * kBytes));
    CU(cuMemsetD8(p, 0, kBytes));
    CU(cuMemsetD8(q, 0, kBytes));
    CU(cuCtxSynchronize());
    const Times alone = time_copies(p, 0, host, kBytes);
    EXPECT_GE(alone.up_ms, 9.99F);
    EXPECT_LT(alone.up_ms, 12.4F);
    const Times both = time_copies(p, q, host, kBytes);
    EXPECT_GE(both.up_ms, 12.4F);
    EXPECT_GE(both.down_ms, 12.4F);
    EXPECT_LT(both.up_ms, 19.0F);
  }));
}

TEST(RealClock, StreamsOverlap) {
  EXPECT_CLEAN(
      in_child({{"SIMGPU_CLOCK", "real"}, {"SIMGPU_H2D", "0.1"}, {"SIMGPU_BANDWIDTH", "0.1"}}, [] {
        Gpu gpu;
        constexpr size_t kBytes = 20000000;
        const CUdeviceptr p = allocate(kBytes);
        const CUdeviceptr q = allocate(kBytes);
        void* host = allocate_pinned(kBytes);
        double best = 1e9;
        for (int attempt = 0; attempt < 4 && best > 0.38; ++attempt) {
          const auto start = std::chrono::steady_clock::now();
          CU(cuMemcpyHtoDAsync(p, host, kBytes, new_stream()));  // 200 ms
          CU(cuMemsetD8Async(q, 1, kBytes, new_stream()));       // 200 ms
          CU(cuCtxSynchronize());
          best = std::min(best, seconds_since(start));
        }
        EXPECT_GT(best, 0.199);
        EXPECT_LT(best, 0.38);
      }));
}

}  // namespace
}  // namespace simgpu::test
