// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/worker.h"

#include <signal.h>
#include <time.h>

#include "interpose/driver/errors.h"
#include "interpose/driver/table.h"
#include "interpose/engine/engine.h"
#include "interpose/life/thread_state.h"
#include "profiler/base/log.h"

namespace offload {

void Worker::start(Engine& engine, CUcontext context) {
  if (started_.exchange(true, std::memory_order_acq_rel)) return;
  engine_ = &engine;
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

void* Worker::run(void* self) {
  auto& worker = *static_cast<Worker*>(self);
  this_thread.inside = true;
  real<Entry::cuCtxSetCurrent>()(worker.context_);
  this_thread.context = worker.context_;
  this_thread.context_known = true;
  while (!worker.stopping_.load(std::memory_order_acquire) && !context_lost()) {
    if (!worker.engine_->worker_step()) worker.engine_->wait_for_work();
  }
  return nullptr;
}

}  // namespace offload
