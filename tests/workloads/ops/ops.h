// SPDX-License-Identifier: Apache-2.0
#pragma once
// The model's operations. Each computes its output on the context's queue and, if the context
// records, leaves a node that saves the tensors that autograd would save for it. All are
// asynchronous.

#include "tests/workloads/parameter.h"
#include "tests/workloads/tape.h"

namespace gpt {

// Shape of a batch of sequences of vectors.
struct Shape {
  int batch;
  int sequence;
  int width;
  int rows() const { return batch * sequence; }
  int64_t count() const { return int64_t{rows()} * width; }
};

// out[rows, columns] = x[rows, inner] weight[inner, columns] + bias; bias may be null.

Variable linear(const Context& context, const Variable& x, Parameter& weight, Parameter* bias,
                int rows, const char* name);
Variable layer_norm(const Context& context, const Variable& x, Parameter& weight, Parameter& bias,
                    int rows, const char* name);
Variable gelu(const Context& context, const Variable& x, int64_t count, const char* name);
Variable add(const Context& context, const Variable& a, const Variable& b, int64_t count,
             const char* name);
// Causal, q, k and v of `shape`; shape.width is split among the heads.
Variable attention(const Context& context, const Variable& q, const Variable& k, const Variable& v,
                   Shape shape, int heads, const char* name);
// Rows of `tokens_table` chosen by tokens, plus rows of `positions_table`.
Variable embedding(const Context& context, const Tensor& tokens, Parameter& token_table,
                   Parameter& position_table, Shape shape, const char* name);
// Mean over the rows, one float.
Variable cross_entropy(const Context& context, const Variable& logits, const Tensor& targets,
                       int rows, int vocabulary);

// Runs `segment` without recording and saves only x; its backward runs it again, recording.
using Segment = std::function<Variable(const Context&, const Variable&)>;
Variable checkpoint(const Context& context, const Variable& x, Segment segment);

// On plain tensors.
Tensor add_tensors(Queue& queue, const Tensor& a, const Tensor& b);
void add_into(Queue& queue, const Tensor& sum, const Tensor& a);
Tensor filled(Queue& queue, float value, int64_t count, Role role, const char* name);
// in[parts, count] summed over parts; `in` itself if there is one part.
Tensor sum_parts(Queue& queue, Tensor in, int64_t count, int parts, Role role, const char* name,
                 int layer);

}  // namespace gpt
