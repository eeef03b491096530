// SPDX-License-Identifier: Apache-2.0
#pragma once
// A GPT on bytes: embeddings, blocks of pre-norm attention and MLP (GPT-2's layout), layer norm,
// head.

#include <deque>
#include <functional>
#include <vector>

#include "tests/workloads/loader.h"
#include "tests/workloads/ops/ops.h"
#include "tests/workloads/options.h"
#include "tests/workloads/parameter.h"

namespace gpt {

class Model {
 public:
  // Draws the initial weights from the seed and puts them on the device; returns once they are
  // there.
  Model(const Options& options, Queue& queue);

  // The mean loss over the batch. `before_layer(i)` is called before the first use of the layer's
  // parameters: 0 for the embedding, 1 to layers for the blocks, layers + 1 for the head.
  Variable loss(const Context& context, const Batch& batch,
                const std::function<void(int)>& before_layer);

  // In the order of their layers, which is that of the numbers above.
  std::deque<Parameter>& parameters() { return parameters_; }
  int parameter_layers() const { return int(blocks_.size()) + 2; }

 private:
  struct Norm {
    Parameter* weight;
    Parameter* bias;
  };
  struct Linear {
    Parameter* weight;
    Parameter* bias;
  };
  struct Block {
    Norm norm1;
    Linear query, key, value, projection;
    Norm norm2;
    Linear up, down;
  };

  Parameter& make_parameter(const char* name, int layer, int rows, int columns, float deviation,
                            float mean);
  Norm make_norm(const char* weight, const char* bias, int layer);
  Linear make_linear(const char* weight, const char* bias, int layer, int inner, int columns,
                     float deviation);
  void initialise(Queue& queue);

  Variable attention_part(const Context& context, const Block& block, const Variable& x,
                          Shape shape) const;
  Variable mlp_part(const Context& context, const Block& block, const Variable& x,
                    Shape shape) const;
  Variable run_blocks(const Context& context, Variable x, Shape shape, int first, int end) const;

  Options options_;
  std::deque<Parameter> parameters_;  // a deque: nodes and blocks hold their addresses
  Parameter* token_table_;
  Parameter* position_table_;
  std::vector<Block> blocks_;
  Norm final_norm_;
  Linear head_;
};

}  // namespace gpt
