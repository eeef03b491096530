// SPDX-License-Identifier: Apache-2.0
#include "tests/model/fiber.h"

#include <cstdint>

namespace offload::model {

namespace {
constexpr size_t kStackBytes = size_t{128} << 10;
// What switching itself keeps below the caller's frame, and what a leaf may use there.
constexpr size_t kBelow = 1024;
alignas(64) char stacks[kMostFibers][kStackBytes];
}  // namespace

void Fiber::start(size_t slot, void (*body)(void*), void* argument) {
  slot_ = slot;
  body_ = body;
  argument_ = argument;
  getcontext(&inside_);
  inside_.uc_stack.ss_sp = stacks[slot];
  inside_.uc_stack.ss_size = kStackBytes;
  inside_.uc_link = &outside_;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&inside_, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
  low_ = stack_end() - kBelow;
}

void Fiber::enter(unsigned high, unsigned low) {
  auto* self = reinterpret_cast<Fiber*>(uintptr_t{high} << 32 | low);
  self->body_(self->argument_);
}

void Fiber::resume() {
  swapcontext(&outside_, &inside_);
}

__attribute__((noinline)) void Fiber::suspend() {
  char here = 0;
  char* volatile at = &here;
  low_ = at - kBelow;
  if (low_ < stacks[slot_]) low_ = stacks[slot_];
  swapcontext(&inside_, &outside_);
}

char* Fiber::stack_end() const {
  return stacks[slot_] + kStackBytes;
}

}  // namespace offload::model
