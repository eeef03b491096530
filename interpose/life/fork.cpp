// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/fork.h"

#include <pthread.h>

#include <atomic>

#include "interpose/life/sessions.h"
#include "profiler/statistics.h"

namespace offload {
namespace {

constinit std::atomic<bool> forked{false};

// A process that has not used CUDA may be forked, and its children may.
void in_child() {
  if (start_over_in_child()) {
    statistics().start();
    return;
  }
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
