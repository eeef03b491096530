// SPDX-License-Identifier: Apache-2.0
#include "tests/workloads/tape.h"

#include <atomic>
#include <limits>
#include <queue>
#include <unordered_map>

#include "tests/workloads/ops/ops.h"

namespace gpt {
namespace {

std::atomic<uint64_t> next_priority = 0;

struct Pending {
  int dependencies = 0;
  Tensor gradient;
};
using PendingMap = std::unordered_map<Node*, Pending>;

PendingMap count_dependencies(Node* root) {
  PendingMap pending;
  pending[root];
  std::vector<Node*> stack = {root};
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    for (const auto& input : node->inputs) {
      if (input == nullptr) continue;
      const bool seen = pending.count(input.get()) != 0;
      ++pending[input.get()].dependencies;
      if (!seen) stack.push_back(input.get());
    }
  }
  return pending;
}

void accumulate(Queue& queue, Tensor& sum, Tensor gradient) {
  if (sum == nullptr) {
    sum = std::move(gradient);
  } else if (sum.use_count() == 1) {
    add_into(queue, sum, gradient);
  } else {
    sum = add_tensors(queue, sum, gradient);
  }
}

struct LaterFirst {
  bool operator()(const Node* a, const Node* b) const { return a->priority < b->priority; }
};

}  // namespace

Node::Node(bool first, std::vector<std::shared_ptr<Node>> input_nodes, Backward function)
    : priority(first ? std::numeric_limits<uint64_t>::max() : next_priority++),
      inputs(std::move(input_nodes)),
      backward(std::move(function)) {}

Variable result(const Context& context, Tensor data, std::vector<std::shared_ptr<Node>> inputs,
                const std::function<Backward()>& make_backward) {
  if (!context.recording) return {std::move(data), nullptr};
  return {std::move(data), std::make_shared<Node>(false, std::move(inputs), make_backward())};
}

std::shared_ptr<Node> make_leaf(std::function<void(Queue&, Tensor)> sink) {
  return std::make_shared<Node>(true, std::vector<std::shared_ptr<Node>>{},
                                [sink = std::move(sink)](Queue& queue, Tensor gradient) {
                                  sink(queue, std::move(gradient));
                                  return std::vector<Tensor>{};
                                });
}

void run_backward(Queue& queue, const std::shared_ptr<Node>& root, Tensor gradient) {
  PendingMap pending = count_dependencies(root.get());
  pending[root.get()].gradient = std::move(gradient);
  std::priority_queue<Node*, std::vector<Node*>, LaterFirst> ready;
  ready.push(root.get());
  while (!ready.empty()) {
    Node* node = ready.top();
    ready.pop();
    std::vector<Tensor> gradients = node->backward(queue, std::move(pending[node].gradient));
    // What the node saved is freed now, not when the graph goes.
    const bool is_leaf = node->inputs.empty();
    if (!is_leaf) node->backward = nullptr;
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      Node* input = node->inputs[i].get();
      if (input == nullptr) continue;
      Pending& next = pending[input];
      accumulate(queue, next.gradient, std::move(gradients[i]));
      if (--next.dependencies == 0) ready.push(input);
    }
  }
}

}  // namespace gpt
