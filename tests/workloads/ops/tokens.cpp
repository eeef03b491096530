// SPDX-License-Identifier: Apache-2.0
// Embedding and cross-entropy.
#include "tests/workloads/ops/grids.h"
#include "tests/workloads/ops/ops.h"

namespace gpt {
namespace {

constexpr int kChunkRows = 2048;

std::vector<Tensor> embedding_backward(Queue& queue, const Tensor& tokens, const Tensor& gradient,
                                       const Parameter& token_table,
                                       const Parameter& position_table, Shape shape) {
  const Chunks chunks = chunks_of(shape.rows(), kChunkRows);
  Tensor parts = queue.floats(chunks.count * token_table.count(), Role::kWorkspace,
                              "embedding gradient parts", -1);
  LAUNCH(queue, gpt_embedding_backward_tokens,
         (Groups{round_up_quotient(shape.width, kGroupLanes), chunks.count}), reads(tokens),
         reads(gradient), writes(parts), shape.rows(), shape.width, token_table.rows, chunks.rows);
  Tensor grad_tokens = sum_parts(queue, std::move(parts), token_table.count(), chunks.count,
                                 Role::kGradient, token_table.name, -1);
  Tensor grad_positions =
      queue.floats(position_table.count(), Role::kGradient, position_table.name, -1);
  LAUNCH(queue, gpt_embedding_backward_positions, Groups{position_table.rows}, reads(gradient),
         writes(grad_positions), shape.batch, shape.sequence, position_table.rows, shape.width);
  return {std::move(grad_tokens), std::move(grad_positions)};
}

}  // namespace

Variable embedding(const Context& context, const Tensor& tokens, Parameter& token_table,
                   Parameter& position_table, Shape shape, const char* name) {
  Tensor out = context.output(shape.count(), name);
  LAUNCH(context.queue, gpt_embedding, Groups{shape.rows()}, reads(tokens), reads(token_table.data),
         reads(position_table.data), writes(out), shape.rows(), shape.sequence, shape.width,
         token_table.rows);
  return result(context, out, {token_table.leaf, position_table.leaf}, [&] {
    return [tokens = saved(tokens), table = &token_table, positions = &position_table, shape](
               Queue& queue, const Tensor& gradient) {
      return embedding_backward(queue, tokens, gradient, *table, *positions, shape);
    };
  });
}

Variable cross_entropy(const Context& context, const Variable& logits, const Tensor& targets,
                       int rows, int vocabulary) {
  const int64_t count = int64_t{rows} * vocabulary;
  Tensor log_probability =
      context.queue.floats(count, Role::kLogits, "log probabilities", context.layer);
  Tensor row_loss =
      context.queue.floats(rows, Role::kTemporary, "losses of the rows", context.layer);
  LAUNCH(context.queue, gpt_cross_entropy, Groups{rows}, reads(logits.data), reads(targets),
         writes(log_probability), writes(row_loss), rows, vocabulary);
  Tensor loss = context.queue.floats(1, Role::kTemporary, "loss", context.layer);
  LAUNCH(context.queue, gpt_mean, Groups{1}, reads(row_loss), writes(loss), rows);
  return result(context, loss, {logits.node}, [&] {
    return [log_probability = saved(log_probability), targets = saved(targets), rows, vocabulary,
            count](Queue& queue, const Tensor& gradient) {
      Tensor grad_logits = queue.floats(count, Role::kLogits, "gradient of the logits", -1);
      LAUNCH(queue, gpt_cross_entropy_backward, Groups{rows}, reads(log_probability),
             reads(targets), reads(gradient), writes(grad_logits), rows, vocabulary);
      return std::vector<Tensor>{std::move(grad_logits)};
    };
  });
}

}  // namespace gpt
