// SPDX-License-Identifier: Apache-2.0
#include "tests/workloads/backward_thread.h"

#include <utility>

namespace gpt {

BackwardThread::BackwardThread(int device) : device_(device), thread_([this] { serve(); }) {}

BackwardThread::~BackwardThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BackwardThread::run(Queue& queue, std::shared_ptr<Node> root, Tensor gradient) {
  std::unique_lock lock(mutex_);
  work_ = {&queue, std::move(root), std::move(gradient)};
  busy_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !busy_; });
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void BackwardThread::serve() {
  Truth::name_thread("backward");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || work_.queue != nullptr; });
    if (stopping_) return;
    Work work = std::exchange(work_, {});
    lock.unlock();
    std::exception_ptr failure;
    try {
      // A thread begins without a device of its own choice.
      CHECK_CUDA(cudaSetDevice, device_);
      run_backward(*work.queue, work.root, std::move(work.gradient));
    } catch (...) {
      failure = std::current_exception();
    }
    work = {};
    lock.lock();
    failure_ = failure;
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace gpt
