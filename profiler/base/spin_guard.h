// SPDX-License-Identifier: Apache-2.0
#pragma once
// A lock for a handful of instructions, usable before main, after exit, and as a member of
// constant-initialised objects.

#include <sched.h>

#include <atomic>

namespace offload {

class SpinGuard {
 public:
  explicit SpinGuard(std::atomic_flag& flag) : flag_(flag) {
    while (flag_.test_and_set(std::memory_order_acquire)) {
      sched_yield();  // the holder may have lost its core
    }
  }
  ~SpinGuard() { flag_.clear(std::memory_order_release); }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;

 private:
  std::atomic_flag& flag_;
};

}  // namespace offload
