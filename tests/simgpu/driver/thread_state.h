// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the driver keeps per host thread. Freed when the thread ends; the main thread's is leaked,
// because exit handlers still call the driver after thread-local destructors have run.

#include <cuda.h>

#include <utility>
#include <vector>

#include "tests/simgpu/check/vector_clock.h"

namespace simgpu {

struct Context;
struct Stream;

struct ThreadState {
  uint64_t id = 0;                                            // never used again
  std::vector<Context*> contexts;                             // the stack; the last one is current
  std::vector<std::pair<Context*, Stream*>> default_streams;  // per-thread default streams
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  const char* api = nullptr;      // the entry that it is in
  int64_t time_ns = 0;            // clock virtual: how far this thread is
  bool in_host_function = false;  // then no call is permitted
  ClockRef knowledge;             // with SIMGPU_CHECK_THREADS=own
};

ThreadState& thread_state();

}  // namespace simgpu
