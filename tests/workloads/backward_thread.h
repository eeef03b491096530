// SPDX-License-Identifier: Apache-2.0
#pragma once
// The host thread on which backward passes run, one for the whole run, as PyTorch's autograd engine
// has one per device.

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "tests/workloads/tape.h"

namespace gpt {

class BackwardThread {
 public:
  explicit BackwardThread(int device);
  ~BackwardThread();

  // Runs the backward pass there and waits for the thread (not for the GPU). What it throws is
  // thrown here.
  void run(Queue& queue, std::shared_ptr<Node> root, Tensor gradient);

 private:
  struct Work {
    Queue* queue = nullptr;
    std::shared_ptr<Node> root;
    Tensor gradient;
  };

  void serve();

  const int device_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  Work work_;  // queue null: none
  bool busy_ = false;
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace gpt
