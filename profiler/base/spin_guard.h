// SPDX-License-Identifier: Apache-2.0
#pragma once
// A lock for a handful of instructions, usable before main, after exit, and as a member of
// constant-initialised objects.

#include <sched.h>

#include <atomic>

namespace offload {

class SpinGuard {
 public:
  static constexpr int kPatient = 10000;

  explicit SpinGuard(std::atomic_flag& flag) : flag_(flag) {
    while (flag_.test_and_set(std::memory_order_acquire)) {
      sched_yield();  // the holder may have lost its core
    }
  }
  // For a reader at the end of the process, which may have interrupted the holder on its own
  // thread: after this many looks it goes on without the lock.
  SpinGuard(std::atomic_flag& flag, int looks) : flag_(flag) {
    while ((held_ = !flag_.test_and_set(std::memory_order_acquire)) == false && --looks > 0) {
      sched_yield();
    }
  }
  ~SpinGuard() {
    if (held_) flag_.clear(std::memory_order_release);
  }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;

 private:
  std::atomic_flag& flag_;
  bool held_ = true;
};

}  // namespace offload
