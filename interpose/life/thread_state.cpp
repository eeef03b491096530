// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/thread_state.h"

#include <pthread.h>

#include <atomic>

#include "interpose/engine/pins.h"

namespace offload {

__attribute__((tls_model("initial-exec"))) constinit thread_local ThreadState this_thread;

namespace {

constinit std::atomic<uint64_t> generation{1};
constinit pthread_once_t key_once = PTHREAD_ONCE_INIT;
constinit pthread_key_t key;

void give_pins_back(void*) {
  for (ThreadState::OfDevice& device : this_thread.devices) {
    if (device.pins != nullptr) PinRegistry::give_back(device.pins);
    device = {};
  }
}

void make_key() {
  pthread_key_create(&key, &give_pins_back);
}

}  // namespace

void forget_streams() {
  generation.fetch_add(1, std::memory_order_acq_rel);
}

uint64_t stream_generation() {
  return generation.load(std::memory_order_acquire);
}

void return_pins_at_thread_exit() {
  pthread_once(&key_once, &make_key);
  pthread_setspecific(key, &this_thread);
}

}  // namespace offload
