// SPDX-License-Identifier: Apache-2.0
#pragma once
// The engine's one thread: unmaps what has been left, shows host copies, and finishes what waits
// for the GPU. Started when the engine first has something to do. It takes no signals, so the
// program's handlers run where they always did.

#include <pthread.h>

#include <atomic>

#include "interpose/driver/cuda_api.h"

namespace offload {

class Engine;

class Worker {
 public:
  bool started() const { return started_.load(std::memory_order_relaxed); }
  // Once; later calls do nothing.
  void start(Engine& engine, CUcontext context);
  // Waits for it to end, a second at the most.
  void stop();

 private:
  static void* run(void* self);

  std::atomic<bool> started_{false};
  std::atomic<bool> stopping_{false};
  Engine* engine_ = nullptr;
  CUcontext context_ = nullptr;
  pthread_t thread_{};
  std::atomic<bool> running_{false};
};

}  // namespace offload
