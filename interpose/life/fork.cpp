// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/fork.h"

#include <pthread.h>

#include <atomic>

#include "interpose/life/session.h"

namespace offload {
namespace {

constinit std::atomic<bool> forked{false};

void in_child() {
  forked.store(true, std::memory_order_relaxed);
  forward_from_now_on();
}

}  // namespace

void forward_in_children() {
  pthread_atfork(nullptr, nullptr, &in_child);
}

bool is_forked_child() {
  return forked.load(std::memory_order_relaxed);
}

}  // namespace offload
