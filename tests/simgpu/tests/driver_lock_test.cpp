// SPDX-License-Identifier: Apache-2.0
// Clock virtual: what some calls make others wait for, and links that slow down, against times
// worked out by hand.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "tests/simgpu/tests/support/timed.h"

namespace simgpu::test {
namespace {

// Until that thread of the process sleeps, as in a call that blocks; at most twenty seconds.
void await_sleep(pid_t thread) {
  for (int i = 0; i < 20000; ++i) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string text;
    std::getline(file, text);
    if (!file || text.find(") S ") != std::string::npos) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// A thread with the context current, which makes its call when it is told to.
class Caller {
 public:
  Caller(CUcontext context, std::function<void()> call)
      : thread_([this, context, call = std::move(call)] {
          cuCtxSetCurrent(context);
          id_ = static_cast<pid_t>(syscall(SYS_gettid));
          while (!go_) std::this_thread::yield();
          call();
        }) {
    while (id_ == 0) std::this_thread::yield();
  }
  ~Caller() { thread_.join(); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  // Returns when the call has been made and is on its way.
  void call() {
    go_ = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    await_sleep(id_);
  }

 private:
  std::atomic<pid_t> id_{0};
  std::atomic<bool> go_{false};
  std::thread thread_;
};

// The hand-over from thread to thread: a call begins when the last one that had ended has ended.
TEST(DriverLock, MappingCostsAndDelaysOtherThreads) {
  const auto body = [](int maps) {
    return [maps] {
      Scene s;
      CU(cuEventRecord(s.begin, s.a));
      std::thread([&] {
        cuCtxSetCurrent(s.gpu.context);
        for (int i = 0; i < maps; ++i) new_extent(2 << 20);
      }).join();
      CU(cuEventRecord(s.end_a, s.a));  // of this thread, after the other's calls
      CU(cuCtxSynchronize());
      std::fprintf(stderr, "%.0f", between(s.begin, s.end_a));
    };
  };
  const double none = std::strtod(run_timed(body(0)).outcome.errors.c_str(), nullptr);
  const double four = std::strtod(run_timed(body(4)).outcome.errors.c_str(), nullptr);
  const double slow =
      std::strtod(run_timed(body(4), {{"SIMGPU_SLOW_MAPS", "10"}}).outcome.errors.c_str(), nullptr);
  EXPECT_NEAR(none, 800 + 200, 1);  // its own cost, and cuCtxSetCurrent's
  EXPECT_NEAR(four, none + 4 * (193000 + 10000 + 1450 + 36000), 5);
  EXPECT_NEAR(slow, none + 4 * (1930000 + 10000 + 14500 + 360000), 5);
}

// Beside a mapping call that is under way, so that no hand-over counts: what begins then begins
// when it ends. (Teardown and mapping take locks of the whole driver,
// NVIDIA/open-gpu-kernel-modules, discussion 1543. Queries are no exception,
// vllm-project/vllm#47081 and pytorch/pytorch#130844: a poll of an event takes the driver's lock.)
TEST(DriverLock, MappingDelaysWhatBeginsBesideIt) {
  const auto beside = [](bool query) {
    return [query] {
      Scene s;
      CU(s.gpu.launch_store(s.q, 1, 1, s.b));  // not the first one beside the other thread
      CU(cuCtxSynchronize());
      CUmemGenericAllocationHandle extent = 0;
      Caller mapper(s.gpu.context, [&] {
        const CUmemAllocationProp properties = device_properties();
        EXPECT_EQ(cuMemCreate(&extent, 2 << 20, &properties, 0), CUDA_SUCCESS);
      });
      static const auto self = static_cast<pid_t>(syscall(SYS_gettid));
      static std::atomic<bool> runs{false};
      static std::atomic<bool> calls{false};
      CU(cuEventRecord(s.begin, s.b));  // 800
      // While it runs the devices stand still, and calls, which the devices must keep up with,
      // stay.
      CU(cuLaunchHostFunc(
          s.a,
          [](void*) {
            runs = true;
            while (!calls) std::this_thread::yield();
            await_sleep(self);
          },
          nullptr));  // 2500
      while (!runs) std::this_thread::yield();
      mapper.call();
      calls = true;
      if (query) {
        EXPECT_EQ(cuEventQuery(s.begin), CUDA_SUCCESS);  // 500
      } else {
        CU(s.gpu.launch_store(s.q, 1, 1, s.a));  // 2500
      }
      CU(cuEventRecord(s.end_b, s.b));
      CU(cuCtxSynchronize());
      EXPECT_NEAR(between(s.begin, s.end_b), 2500 + 193000 + (query ? 500 : 2500) + 800, 1);
    };
  };
  for (const bool query : {false, true}) {
    EXPECT_CLEAN(run_timed([&] { beside(query)(); }).outcome);
  }
}

// The first launch from a module loads its code under the context's lock: any other thread's call
// stands behind it (CUDA Programming Guide, "Lazy Loading"; meta-pytorch/torchcomms#2334 has
// programs that show it). Here the launch then blocks, its stream being full: only the lock can
// keep others back, and only for as long as loading takes.
TEST(DriverLock, TheFirstLaunchDelaysOtherThreads) {
  const auto body = [](bool first) {
    return [first] {
      Scene s;
      if (!first) {
        CU(s.gpu.launch_store(s.q, 1, 1, s.b));
        CU(cuCtxSynchronize());
      }
      Gate gate;
      Caller launcher(s.gpu.context, [&] {
        EXPECT_EQ(s.gpu.launch_add(s.q, 1, 1, s.a), CUDA_SUCCESS);  // 2500
      });
      gate.close(s.a);
      for (int i = 0; i < 3; ++i) CU(cuMemsetD8Async(s.p, 0, 1000, s.a));
      CU(cuEventRecord(s.begin, s.b));
      CU(cuStreamSynchronize(s.b));  // 1000; nothing is left that the launch would wait for first
      launcher.call();
      EXPECT_EQ(cuEventQuery(s.begin), CUDA_SUCCESS);  // 500
      CU(cuEventRecord(s.end_b, s.b));                 // 800
      CU(cuStreamSynchronize(s.b));
      gate.open();
      EXPECT_NEAR(between(s.begin, s.end_b), 1000 + (first ? 2500 + 300000 : 0) + 500 + 800, 1);
    };
  };
  EXPECT_CLEAN(run_timed(body(true), {{"SIMGPU_QUEUE_DEPTH", "4"}}).outcome);
  EXPECT_CLEAN(run_timed(body(false), {{"SIMGPU_QUEUE_DEPTH", "4"}}).outcome);
}

// CUDA C++ Programming Guide, "Implicit Synchronization": a page-locked host memory allocation.
TEST(DriverLock, PinningWaitsForTheDevice) {
  const Timed timed = run_timed([] {
    Scene s;
    CU(cuMemsetD8Async(s.p, 0, 5 * kMega, s.a));
    allocate_pinned(kMega);
    CU(cuStreamQuery(s.a));  // over
  });
  EXPECT_CLEAN(timed.outcome);
  // The call's own cost comes first.
  EXPECT_DOUBLE_EQ(timed.value("cuMemHostAlloc", "wait_seconds"), 0.005 - 0.0001);
}

// Ten copies of a millisecond each, or two of four that share the link, of which what comes after
// the drop runs at half its speed.
class LinkDrop : public testing::TestWithParam<int> {
 protected:
  static constexpr double kBefore = 5.5e6;  // from the first copy's start to the drop

  static void copies() {
    Scene s;
    const int direction = GetParam();
    CU(cuEventRecord(s.begin, s.a));
    if (direction == 2) {
      CU(cuMemcpyHtoDAsync(s.p, s.host, 4 * kMega, s.a));
      CU(cuMemcpyDtoHAsync(s.back, s.q, 4 * kMega, s.b));
    }
    for (int i = 0; i < 10 && direction != 2; ++i) {
      CU(direction == 0 ? cuMemcpyHtoDAsync(s.p, s.host, kMega, s.a)
                        : cuMemcpyDtoHAsync(s.back, s.q, kMega, s.a));
    }
    CU(cuEventRecord(s.end_a, s.a));
    CU(cuEventRecord(s.end_b, s.b));
    CU(cuCtxSynchronize());
    // The last calls.
    std::fprintf(stderr, "%.0f ", between(s.begin, s.end_a));
    std::fprintf(stderr, "%.0f", between(s.begin, s.end_b));
  }
};

TEST_P(LinkDrop, IsExact) {
  // When the first copy begins: the run's end, less two queries of 200, less all that is timed.
  const Timed even = run_timed(copies);
  char* next = nullptr;
  const double even_a = std::strtod(even.outcome.errors.c_str(), &next);
  const double even_b = std::strtod(next, nullptr);
  const bool both = GetParam() == 2;
  const double length = both ? std::max(even_a, even_b) : even_a;
  EXPECT_NEAR(length, both ? 4000 + 2 * 3998000 + 2000 : 2000 + 10e6, 2);
  const double begin_ns = even.value("simulated_seconds") * 1e9 - 400 - length + 2000;
  char drop[64];
  std::snprintf(drop, sizeof drop, "%.9f:0.5", (begin_ns + kBefore) * 1e-9);
  const Timed slow = run_timed(copies, {{"SIMGPU_LINK_DROP", drop}});
  const double slow_a = std::strtod(slow.outcome.errors.c_str(), &next);
  const double slow_b = std::strtod(next, nullptr);
  if (!both) {
    EXPECT_NEAR(slow_a, 2000 + kBefore + 2 * (10e6 - kBefore), 3);
    return;
  }
  // 2000 bytes alone; at half speed until the drop, a quarter from then on; the other's last 2000
  // alone, at half.
  const double left = 4e6 - 2000 - (kBefore - 2000) / 2;
  EXPECT_NEAR(slow_a, 2000 + kBefore + 4 * left, 3);
  EXPECT_NEAR(slow_b, slow_a + 2 * 2000, 3);
}

std::string direction_name(const testing::TestParamInfo<int>& direction) {
  constexpr const char* kNames[] = {"ToTheDevice", "ToTheHost", "Both"};
  return kNames[direction.param];
}

INSTANTIATE_TEST_SUITE_P(Directions, LinkDrop, testing::Values(0, 1, 2), direction_name);

}  // namespace
}  // namespace simgpu::test
