// SPDX-License-Identifier: Apache-2.0
#pragma once
// AdamW over all parameters. Its state is made in the first step. Weight decay is for matrices
// only.

#include <deque>
#include <memory>
#include <vector>

#include "tests/workloads/device.h"
#include "tests/workloads/model.h"

namespace gpt {

class Optimizer {
 public:
  // Runs on `queue`, which may be `compute` itself or a queue of its own.
  Optimizer(Model& model, Queue& queue, Queue& compute, double learning_rate);

  // Updates every parameter and drops its gradient. With a queue of its own, the update starts once
  // what compute holds so far is done, and compute goes on at once.
  void step();

  // Makes compute wait for the update of a layer's parameters (Model::loss).
  void before_layer(int layer);

 private:
  bool own_queue() const { return &queue_ != &compute_; }
  void update(Parameter& parameter, double rate);

  Model& model_;
  Queue& queue_;
  Queue& compute_;
  double learning_rate_;
  int64_t steps_ = 0;
  Event gradients_ready_;
  std::vector<std::unique_ptr<Event>> updated_;  // per layer
  std::vector<bool> waiting_;                    // compute has yet to wait for it
};

}  // namespace gpt
