// SPDX-License-Identifier: Apache-2.0
#include "tests/workloads/optimizer.h"

#include <algorithm>
#include <cmath>

#include "tests/workloads/ops/grids.h"

namespace gpt {
namespace {
constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.95;
constexpr double kEpsilon = 1e-8;
constexpr double kWeightDecay = 0.1;
constexpr int64_t kWarmUpSteps = 2;
}  // namespace

Optimizer::Optimizer(Model& model, Queue& queue, Queue& compute, double learning_rate)
    : model_(model), queue_(queue), compute_(compute), learning_rate_(learning_rate) {
  const size_t layers = size_t(model.parameter_layers());
  for (size_t i = 0; i < layers; ++i) updated_.push_back(std::make_unique<Event>());
  waiting_.assign(layers, false);
}

void Optimizer::step() {
  ++steps_;
  if (own_queue()) {
    compute_.record(gradients_ready_);
    queue_.wait(gradients_ready_);
  }
  const double rate =
      learning_rate_ * double(std::min(steps_, kWarmUpSteps)) / double(kWarmUpSteps);
  int layer = 0;
  for (Parameter& parameter : model_.parameters()) {
    for (; layer < parameter.layer; ++layer) {
      if (own_queue()) queue_.record(*updated_[size_t(layer)]);
    }
    update(parameter, rate);
  }
  if (own_queue()) {
    queue_.record(*updated_[size_t(layer)]);
    waiting_.assign(waiting_.size(), true);
  }
}

void Optimizer::before_layer(int layer) {
  if (!waiting_[size_t(layer)]) return;
  compute_.wait(*updated_[size_t(layer)]);
  waiting_[size_t(layer)] = false;
}

void Optimizer::update(Parameter& parameter, double rate) {
  const int64_t count = parameter.count();
  if (parameter.first == nullptr) {
    parameter.first = queue_.floats(count, Role::kOptimizerState, "first moment", parameter.layer);
    parameter.second =
        queue_.floats(count, Role::kOptimizerState, "second moment", parameter.layer);
    queue_.zero(parameter.first);
    queue_.zero(parameter.second);
  }
  const double decay = parameter.rows > 1 ? kWeightDecay : 0.0;
  const double correction1 = 1.0 - std::pow(kBeta1, double(steps_));
  const double correction2 = 1.0 - std::pow(kBeta2, double(steps_));
  LAUNCH(queue_, gpt_adamw, element_groups(count), updates(parameter.data),
         reads(parameter.gradient), updates(parameter.first), updates(parameter.second), kBeta1,
         kBeta2, rate / correction1, 1.0 / std::sqrt(correction2), kEpsilon, 1.0 - rate * decay,
         count);
  // Freed here, and in this queue's order: the update is its last use.
  queue_.take(parameter.gradient);
  parameter.gradient = nullptr;
}

}  // namespace gpt
