// SPDX-License-Identifier: Apache-2.0
#pragma once
// The engine's one thread: unmaps what has been left, shows host copies, and finishes what waits
// for the GPU. Started with its session. It takes no signals, so the
// program's handlers run where they always did.

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <mutex>

#include "interpose/driver/cuda_api.h"

namespace offload {

class DriverPort;
class Engine;

class Worker {
 public:
  bool started() const { return started_.load(std::memory_order_relaxed); }
  // Once; later calls do nothing.
  void start(Engine& engine, DriverPort& port, CUcontext context);
  // Between the two it makes no call of the driver; pause() waits for the one under way. Several
  // threads may have paused it.
  void pause();
  void resume() { paused_.fetch_sub(1, std::memory_order_release); }
  // Waits for it to end, a second at the most.
  void stop();
  // As stop(), and before it ends the worker tells the statistics what has completed, for which it
  // gives copies under way a moment. It does so, not the caller, because a caller at the end of the
  // process may have been interrupted inside the driver or the engine by a signal.
  enum class Counted : uint8_t {
    kAll,
    kSome,   // copies were still under way
    kNever,  // it did not come to it within a second
  };
  Counted stop_and_count();
  // Its session ended with its context, and copies were under way.
  void ended_uncounted() { counted_.store(Counted::kSome, std::memory_order_release); }
  bool has_ended_uncounted() const {
    return counted_.load(std::memory_order_acquire) == Counted::kSome;
  }

 private:
  static void* run(void* self);
  bool round();
  void count();

  std::atomic<bool> started_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> counting_{false};
  std::atomic<int> paused_{0};  // by so many
  std::mutex in_round_;
  std::atomic<Counted> counted_{Counted::kNever};
  Engine* engine_ = nullptr;
  DriverPort* port_ = nullptr;
  CUcontext context_ = nullptr;
  pthread_t thread_{};
  std::atomic<bool> running_{false};
};

}  // namespace offload
