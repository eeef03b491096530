// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/worker.h"

#include <signal.h>
#include <time.h>

#include "interpose/driver/driver_port.h"
#include "interpose/driver/errors.h"
#include "interpose/driver/own_call.h"
#include "interpose/driver/table.h"
#include "interpose/engine/engine.h"
#include "interpose/life/thread_state.h"
#include "profiler/base/log.h"
#include "profiler/statistics.h"

namespace offload {

void Worker::start(Engine& engine, DriverPort& port, CUcontext context) {
  if (started_.exchange(true, std::memory_order_acq_rel)) return;
  engine_ = &engine;
  port_ = &port;
  context_ = context;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&thread_, nullptr, &run, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error == 0) {
    pthread_setname_np(thread_, "offload");
    running_.store(true, std::memory_order_release);
  } else {
    log_warn("no thread could be made (error %d); addresses of moved buffers are not reused",
             error);
  }
}

void Worker::stop() {
  if (!running_.exchange(false, std::memory_order_acq_rel)) return;
  stopping_.store(true, std::memory_order_release);
  engine_->stop_worker();
  timespec until{};
  clock_gettime(CLOCK_REALTIME, &until);
  ++until.tv_sec;
  pthread_timedjoin_np(thread_, nullptr, &until);
}

Worker::Counted Worker::stop_and_count() {
  counting_.store(true, std::memory_order_release);
  stop();
  return counted_.load(std::memory_order_acquire);
}

void Worker::count() {
  constexpr uint64_t kPatienceNs = 250'000'000;
  const uint64_t until = monotonic_ns() + kPatienceNs;
  bool idle = port_->idle();
  for (; !idle && monotonic_ns() < until; idle = port_->idle()) {
    constexpr timespec kMoment{0, 1'000'000};
    nanosleep(&kMoment, nullptr);
  }
  engine_->collect();
  counted_.store(idle ? Counted::kAll : Counted::kSome, std::memory_order_release);
}

// True if something was done.
bool Worker::round() {
  const std::lock_guard<std::mutex> lock(in_round_);
  return paused_.load(std::memory_order_acquire) == 0 && engine_->worker_step();
}

void Worker::pause() {
  paused_.fetch_add(1, std::memory_order_release);
  const std::lock_guard<std::mutex> lock(in_round_);
}

void* Worker::run(void* self) {
  auto& worker = *static_cast<Worker*>(self);
  this_thread.inside = true;
  const RelaxedCapture relaxed;
  real<Entry::cuCtxSetCurrent>()(worker.context_);
  this_thread.context = worker.context_;
  this_thread.context_known = true;
  while (!worker.stopping_.load(std::memory_order_acquire) && !context_lost()) {
    if (!worker.round()) worker.engine_->wait_for_work();
  }
  if (worker.counting_.load(std::memory_order_acquire)) worker.count();
  return nullptr;
}

}  // namespace offload
