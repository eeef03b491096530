// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reverse-mode differentiation as PyTorch's autograd does it: the forward pass leaves a graph of
// nodes that hold what their backward will read; the backward pass visits them latest first, and
// each lets go of what it held once it ran. A gradient that meets another is added to it, in place
// if nobody else holds it.

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tests/workloads/device.h"
#include "tests/workloads/tensor.h"

namespace gpt {

struct Node;

// A tensor and where its gradient goes; node null: nowhere.
struct Variable {
  Tensor data;
  std::shared_ptr<Node> node;
};

// Maps the gradient of an operation's output to those of its inputs, in the order of Node::inputs.
// Owns what it reads.
using Backward = std::function<std::vector<Tensor>(Queue&, Tensor gradient)>;

struct Node {
  Node(bool first, std::vector<std::shared_ptr<Node>> input_nodes, Backward function);

  // Order of execution: higher first.
  uint64_t priority;
  std::vector<std::shared_ptr<Node>> inputs;
  Backward backward;
};

// What a forward operation needs to know beside its operands.
struct Context {
  Queue& queue;
  bool recording = true;  // false: nothing is saved for a backward pass
  int layer = -1;

  Tensor output(int64_t count, const char* name) const {
    return queue.floats(count, recording ? Role::kActivation : Role::kTemporary, name, layer);
  }
};

// The result of an operation: with a node if the context records.
Variable result(const Context& context, Tensor data, std::vector<std::shared_ptr<Node>> inputs,
                const std::function<Backward()>& make_backward);

// Marks what a Backward captures.
inline Tensor saved(const Tensor& tensor) {
  tensor->saved = true;
  return tensor;
}

// A node that hands gradients to `sink` and ends there; it runs as soon as its gradient is
// complete.
std::shared_ptr<Node> make_leaf(std::function<void(Queue&, Tensor)> sink);

// Runs the backward pass on the calling thread. `gradient` belongs to root's output.
void run_backward(Queue& queue, const std::shared_ptr<Node>& root, Tensor gradient);

}  // namespace gpt
