// SPDX-License-Identifier: Apache-2.0
#pragma once
// Host threads that take turns on one real thread, each on a stack of its own, and whose stacks can
// be put back as they were.

#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace offload::model {

inline constexpr size_t kMostFibers = 4;

class Fiber {
 public:
  // `slot`: which of the stacks; one fiber has it at a time.
  void start(size_t slot, void (*body)(void*), void* argument);
  // From outside: goes on where it left; returns when it suspends or its body returns.
  void resume();
  // From inside.
  void suspend();
  // What of its stack is in use while it is suspended.
  char* stack_begin() const { return low_; }
  char* stack_end() const;

 private:
  static void enter(unsigned high, unsigned low);
  size_t slot_ = 0;
  char* low_ = nullptr;
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  ucontext_t inside_{};
  ucontext_t outside_{};
};

}  // namespace offload::model
