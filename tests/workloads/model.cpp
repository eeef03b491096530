// SPDX-License-Identifier: Apache-2.0
#include "tests/workloads/model.h"

#include <algorithm>
#include <cmath>

#include "tests/workloads/random.h"
#include "tests/workloads/text.h"

namespace gpt {

Model::Model(const Options& options, Queue& queue) : options_(options) {
  const int width = options.width;
  const float deviation = 1.0f / std::sqrt(float(width));
  // What is added to the residual stream starts small, so that depth does not make it grow (GPT-2).
  const float residual = deviation / std::sqrt(2.0f * float(options.layers));
  token_table_ = &make_parameter("token table", 0, kVocabulary, width, 0.1f, 0.0f);
  position_table_ = &make_parameter("position table", 0, options.sequence, width, 0.1f, 0.0f);
  for (int i = 1; i <= options.layers; ++i) {
    Block block;
    block.norm1 = make_norm("norm1 weight", "norm1 bias", i);
    block.query = make_linear("query weight", "query bias", i, width, width, deviation);
    block.key = make_linear("key weight", "key bias", i, width, width, deviation);
    block.value = make_linear("value weight", "value bias", i, width, width, deviation);
    block.projection =
        make_linear("projection weight", "projection bias", i, width, width, residual);
    block.norm2 = make_norm("norm2 weight", "norm2 bias", i);
    block.up = make_linear("up weight", "up bias", i, width, 4 * width, deviation);
    block.down = make_linear("down weight", "down bias", i, 4 * width, width, 0.5f * residual);
    blocks_.push_back(block);
  }
  const int last = options.layers + 1;
  final_norm_ = make_norm("final norm weight", "final norm bias", last);
  head_ = make_linear("head weight", nullptr, last, width, kVocabulary, 0.5f * deviation);
  initialise(queue);
}

Parameter& Model::make_parameter(const char* name, int layer, int rows, int columns,
                                 float deviation, float mean) {
  Parameter& parameter = parameters_.emplace_back();
  parameter.name = name;
  parameter.layer = layer;
  parameter.rows = rows;
  parameter.columns = columns;
  parameter.deviation = deviation;
  parameter.mean = mean;
  parameter.leaf = make_leaf([&parameter](Queue& queue, Tensor gradient) {
    parameter.receive(queue, std::move(gradient));
  });
  return parameter;
}

Model::Norm Model::make_norm(const char* weight, const char* bias, int layer) {
  Parameter& w = make_parameter(weight, layer, 1, options_.width, 0.0f, 1.0f);
  return {&w, &make_parameter(bias, layer, 1, options_.width, 0.0f, 0.0f)};
}

Model::Linear Model::make_linear(const char* weight, const char* bias, int layer, int inner,
                                 int columns, float deviation) {
  Parameter& w = make_parameter(weight, layer, inner, columns, deviation, 0.0f);
  if (bias == nullptr) return {&w, nullptr};
  return {&w, &make_parameter(bias, layer, 1, columns, 0.0f, 0.0f)};
}

void Model::initialise(Queue& queue) {
  int64_t largest = 0;
  for (const Parameter& parameter : parameters_) largest = std::max(largest, parameter.count());
  const PinnedArray<float> staging(largest);
  uint64_t index = 0;
  for (Parameter& parameter : parameters_) {
    Random random(uint64_t(options_.seed), 0, index++);
    for (int64_t i = 0; i < parameter.count(); ++i) {
      staging[i] = parameter.mean + parameter.deviation * random.normal();
    }
    parameter.data =
        queue.floats(parameter.count(), Role::kParameter, parameter.name, parameter.layer);
    queue.copy_in(parameter.data, staging.data(), parameter.data->bytes);
    queue.synchronize();  // the staging buffer is filled again
  }
}

Variable Model::attention_part(const Context& context, const Block& block, const Variable& x,
                               Shape shape) const {
  const int rows = shape.rows();
  const auto project = [&](const Linear& layer, const Variable& in, const char* name) {
    return linear(context, in, *layer.weight, layer.bias, rows, name);
  };
  const Variable h = layer_norm(context, x, *block.norm1.weight, *block.norm1.bias, rows, "norm1");
  const Variable q = project(block.query, h, "query");
  const Variable k = project(block.key, h, "key");
  const Variable v = project(block.value, h, "value");
  const Variable a = attention(context, q, k, v, shape, options_.heads, "attention");
  return project(block.projection, a, "projection");
}

Variable Model::mlp_part(const Context& context, const Block& block, const Variable& x,
                         Shape shape) const {
  const int rows = shape.rows();
  Variable h = layer_norm(context, x, *block.norm2.weight, *block.norm2.bias, rows, "norm2");
  h = linear(context, h, *block.up.weight, block.up.bias, rows, "up");
  h = gelu(context, h, 4 * shape.count(), "gelu");
  return linear(context, h, *block.down.weight, block.down.bias, rows, "down");
}

Variable Model::run_blocks(const Context& context, Variable x, Shape shape, int first,
                           int end) const {
  for (int i = first; i < end; ++i) {
    const Context at{context.queue, context.recording, i + 1};
    const Block& block = blocks_[size_t(i)];
    x = add(at, x, attention_part(at, block, x, shape), shape.count(), "residual1");
    x = add(at, x, mlp_part(at, block, x, shape), shape.count(), "residual2");
  }
  return x;
}

Variable Model::loss(const Context& context, const Batch& batch,
                     const std::function<void(int)>& before_layer) {
  const Shape shape = batch.shape;
  const int rows = shape.rows();
  const int layers = int(blocks_.size());
  before_layer(0);
  Variable x = embedding({context.queue, context.recording, 0}, batch.tokens, *token_table_,
                         *position_table_, shape, "embedding");
  const int stride = options_.checkpoint_every > 0 ? options_.checkpoint_every : 1;
  for (int first = 0; first < layers; first += stride) {
    const int end = std::min(first + stride, layers);
    for (int i = first; i < end; ++i) before_layer(i + 1);
    const Segment segment = [this, shape, first, end](const Context& at, const Variable& in) {
      return run_blocks(at, in, shape, first, end);
    };
    const Context at{context.queue, context.recording, first + 1};
    x = options_.checkpoint_every > 0 ? checkpoint(at, x, segment) : segment(at, x);
  }
  before_layer(layers + 1);
  const Context at{context.queue, context.recording, layers + 1};
  x = layer_norm(at, x, *final_norm_.weight, *final_norm_.bias, rows, "final norm");
  x = linear(at, x, *head_.weight, nullptr, rows, "logits");
  x.data->role = Role::kLogits;
  return cross_entropy(at, x, batch.targets, rows, kVocabulary);
}

}  // namespace gpt
