// SPDX-License-Identifier: Apache-2.0
// Clock virtual: known overlaps against times worked out by hand, and the same run twice.
#include <atomic>
#include <thread>

#include "tests/simgpu/tests/support/timed.h"

namespace simgpu::test {
namespace {

TEST(VirtualClock, ACopyBesideAKernel) {
  const Timed timed = run_timed([] {
    Scene s;
    CU(cuEventRecord(s.begin, s.a));                     // at t
    CU(cuMemsetD8Async(s.q, 0, 4 * kMega, s.a));         // from t + 2000
    CU(cuMemcpyHtoDAsync(s.p, s.host, 3 * kMega, s.b));  // from t + 4000
    CU(cuEventRecord(s.end_a, s.a));
    CU(cuEventRecord(s.end_b, s.b));
    CU(cuCtxSynchronize());
    EXPECT_NEAR(between(s.begin, s.end_a), 4002000, 1);
    EXPECT_NEAR(between(s.begin, s.end_b), 3004000, 1);
  });
  EXPECT_CLEAN(timed.outcome);
  EXPECT_DOUBLE_EQ(timed.value("h2d_busy_seconds"), 0.003);
  EXPECT_DOUBLE_EQ(timed.value("d2h_busy_seconds"), 0);
  EXPECT_DOUBLE_EQ(timed.value("compute_busy_seconds"), 0.020);  // with the first fill
  // Ready 3600 ns after the fill was submitted (a copy, two records, the call itself), it waits for
  // what is left.
  EXPECT_DOUBLE_EQ(timed.value("cuCtxSynchronize", "wait_seconds"),
                   0.015999 + 0.004 - 0.000002 - 2 * 0.0000008 - 0.000001);
}

TEST(VirtualClock, TwoDirectionsShareALink) {
  EXPECT_CLEAN(run_timed([] {
                 Scene s;
                 CU(cuEventRecord(s.begin, s.a));
                 CU(cuMemcpyHtoDAsync(s.p, s.host, 4 * kMega, s.a));  // from t + 2000
                 CU(cuMemcpyDtoHAsync(s.back, s.q, 4 * kMega, s.b));  // from t + 4000
                 CU(cuEventRecord(s.end_a, s.a));
                 CU(cuEventRecord(s.end_b, s.b));
                 CU(cuCtxSynchronize());
                 // 2000 bytes alone, the rest at half speed; then the other's last 2000 alone.
                 EXPECT_NEAR(between(s.begin, s.end_a), 2000 + 2000 + 2 * 3998000, 2);
                 EXPECT_NEAR(between(s.begin, s.end_b), 4000 + 2 * 3998000 + 2000, 2);
               }).outcome);
}

TEST(VirtualClock, ChainsOverEventsAddUp) {
  EXPECT_CLEAN(run_timed([] {
                 Scene s;
                 CU(cuEventRecord(s.begin, s.a));
                 CU(cuMemcpyHtoDAsync(s.p, s.host, 2 * kMega, s.a));  // t + 2000 to t + 2002000
                 CU(cuEventRecord(s.end_a, s.a));
                 CU(cuStreamWaitEvent(s.b, s.end_a, 0));
                 CU(cuMemsetD8Async(s.p, 0, 3 * kMega, s.b));
                 CU(cuMemcpyDtoHAsync(s.back, s.p, kMega, s.b));
                 CU(cuEventRecord(s.end_b, s.b));
                 CU(cuCtxSynchronize());
                 EXPECT_NEAR(between(s.begin, s.end_a), 2002000, 1);
                 EXPECT_NEAR(between(s.begin, s.end_b), 2002000 + 3 * 1e6 + 1e6, 1);
               }).outcome);
}

TEST(VirtualClock, TheHostRunsAhead) {
  const Timed timed = run_timed([] {
    Scene s;
    CU(cuEventRecord(s.begin, s.a));
    for (int i = 0; i < 10; ++i) CU(cuMemsetD8Async(s.p, 0, kMega, s.a));
    CU(cuEventRecord(s.end_a, s.a));
    EXPECT_EQ(cuEventQuery(s.end_a), CUDA_ERROR_NOT_READY);
    CU(cuStreamSynchronize(s.a));
    EXPECT_NEAR(between(s.begin, s.end_a), 2000 + 10 * 1e6, 1);
  });
  EXPECT_CLEAN(timed.outcome);
  // The first began when its call ended; nine more, the record, the query, and the wait itself.
  EXPECT_DOUBLE_EQ(timed.value("cuStreamSynchronize", "wait_seconds"),
                   0.010 - 9 * 0.000002 - 0.0000008 - 0.0000005 - 0.000001);
}

TEST(VirtualClock, AFullQueueHoldsTheHost) {
  const Timed timed = run_timed(
      [] {
        Scene s;
        for (int i = 0; i < 6; ++i) CU(cuMemsetD8Async(s.p, 0, kMega, s.a));
        CU(cuStreamSynchronize(s.a));
      },
      {{"SIMGPU_QUEUE_DEPTH", "4"}});
  EXPECT_CLEAN(timed.outcome);
  // The fifth waits for the first, which began with its call's end, three calls and its own
  // earlier; the sixth for the second, a millisecond after that, less the cost of its own call.
  EXPECT_DOUBLE_EQ(timed.value("a full queue", "wait_seconds"),
                   (0.001 - 4 * 0.000002) + (0.001 - 0.000002));
}

TEST(VirtualClock, PrioritiesBreakTies) {
  EXPECT_CLEAN(run_timed([] {
                 Scene s;
                 CUstream urgent = nullptr;
                 CU(cuStreamCreateWithPriority(&urgent, CU_STREAM_NON_BLOCKING, -5));
                 CU(cuMemsetD8Async(s.p, 0, kMega, s.a));  // occupies the device
                 CU(cuEventRecord(s.begin, s.a));
                 CU(cuMemsetD8Async(s.q, 0, kMega, s.b));
                 CU(cuEventRecord(s.end_b, s.b));
                 CU(cuMemsetD8Async(s.p + kMega, 0, kMega, urgent));
                 CU(cuEventRecord(s.end_a, urgent));
                 CU(cuCtxSynchronize());
                 EXPECT_NEAR(between(s.begin, s.end_a), 1e6, 1);
                 EXPECT_NEAR(between(s.begin, s.end_b), 2e6, 1);
               }).outcome);
}

// A program that looks at memory without any call is given what it waits for, after a while of real
// time.
TEST(VirtualClock, ASilentProgramIsServed) {
  EXPECT_CLEAN(run_timed([] {
                 Scene s;
                 static std::atomic<bool> done{false};
                 CU(cuMemsetD8Async(s.p, 0, kMega, s.a));
                 CU(cuLaunchHostFunc(
                     s.a, [](void*) { done = true; }, nullptr));
                 while (!done) std::this_thread::yield();
                 CU(cuCtxSynchronize());
               }).outcome);
}

// A host function that ends only when the program, which calls meanwhile, lets it: devices and
// calls wait for it only so long.
TEST(VirtualClock, AHostFunctionThatWaitsForTheProgram) {
  EXPECT_CLEAN(run_timed(
                   [] {
                     Scene s;
                     static std::atomic<bool> go{false};
                     CU(cuEventRecord(s.begin, s.a));
                     CU(cuLaunchHostFunc(
                         s.a,
                         [](void*) {
                           while (!go) std::this_thread::yield();
                         },
                         nullptr));                            // 2500
                     CU(cuMemsetD8Async(s.p, 0, kMega, s.b));  // 2000
                     CU(cuEventRecord(s.end_b, s.b));
                     CU(cuStreamSynchronize(s.b));
                     EXPECT_EQ(cuStreamQuery(s.a), CUDA_ERROR_NOT_READY);
                     go = true;
                     CU(cuStreamSynchronize(s.a));
                     EXPECT_NEAR(between(s.begin, s.end_b), 2500 + 2000 + 1e6, 1);
                   },
                   {{"SIMGPU_WATCHDOG", "5"}})
                   .outcome);
}

TEST(VirtualClock, GraphBranchesOverlap) {
  EXPECT_CLEAN(run_timed([] {
                 Scene s;
                 CU(cuStreamBeginCapture(s.a, CU_STREAM_CAPTURE_MODE_GLOBAL));
                 CU(cuEventRecord(s.begin, s.a));
                 CU(cuStreamWaitEvent(s.b, s.begin, 0));
                 CU(cuMemsetD8Async(s.q, 0, 4 * kMega, s.a));
                 CU(cuMemcpyHtoDAsync(s.p, s.host, 3 * kMega, s.b));
                 CU(cuEventRecord(s.end_b, s.b));
                 CU(cuStreamWaitEvent(s.a, s.end_b, 0));
                 CUgraph graph = nullptr;
                 CU(cuStreamEndCapture(s.a, &graph));
                 CUgraphExec exec = nullptr;
                 CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
                 CU(cuEventRecord(s.begin, s.a));
                 CU(cuGraphLaunch(exec, s.a));  // 6000
                 CU(cuEventRecord(s.end_a, s.a));
                 CU(cuCtxSynchronize());
                 EXPECT_NEAR(between(s.begin, s.end_a), 6000 + 4 * 1e6, 1);
               }).outcome);
}

TEST(VirtualClock, TheSameRunTwiceGivesTheSameReport) {
  const auto body = [] {
    Scene s;
    const CUevent used = new_event();
    const CUevent events[] = {new_event(), new_event(), new_event()};
    static int calls = 0;
    for (int i = 0; i < 200; ++i) {
      CUstream stream = i % 3 == 0 ? s.a : s.b;
      CUstream other = i % 3 == 0 ? s.b : s.a;
      CU(cuMemcpyHtoDAsync(s.p, s.host, kMega / (1 + static_cast<size_t>(i % 7)), stream));
      CU(cuEventRecord(events[i % 3], stream));
      CU(cuStreamWaitEvent(other, events[i % 3], 0));
      CU(s.gpu.launch_add(s.p, 256, 1, other));
      CU(cuEventRecord(used, other));
      CU(cuStreamWaitEvent(stream, used, 0));
      if (i % 5 == 0) {
        CU(cuLaunchHostFunc(
            s.a, [](void*) { ++calls; }, nullptr));
      }
      while (i % 11 == 0 && cuEventQuery(events[i % 3]) == CUDA_ERROR_NOT_READY) {
      }
      CUdeviceptr scratch = 0;
      CU(cuMemAllocAsync(&scratch, kMega, s.a));
      CU(cuMemsetD8Async(scratch, 0, kMega, s.a));
      CU(cuMemFreeAsync(scratch, s.a));
      if (i % 40 == 0) {
        std::thread([&] {
          cuCtxSetCurrent(s.gpu.context);
          cuStreamSynchronize(s.b);
        }).join();
      }
    }
    CU(cuCtxSynchronize());
  };
  const Timed first = run_timed(body);
  EXPECT_CLEAN(first.outcome);
  for (int i = 0; i < 5; ++i) {
    const Timed again = run_timed(body);
    EXPECT_EQ(first.report, again.report);
  }
  EXPECT_GT(first.value("simulated_seconds"), 0.2);
  EXPECT_NE(first.report.find("\"checker\": \"silent\""), std::string::npos) << first.report;
}

}  // namespace
}  // namespace simgpu::test
