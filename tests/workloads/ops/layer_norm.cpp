// SPDX-License-Identifier: Apache-2.0
#include "tests/workloads/ops/grids.h"
#include "tests/workloads/ops/ops.h"

namespace gpt {
namespace {

constexpr int kChunkRows = 512;

struct Saved {
  Tensor in, mean, scale;
  Parameter* weight;
  Parameter* bias;
  int rows;
  int layer;
};

std::vector<Tensor> layer_norm_backward(const Saved& at, Queue& queue, const Tensor& gradient) {
  const int width = at.weight->columns;
  Tensor grad_in =
      queue.floats(int64_t{at.rows} * width, Role::kTemporary, "layer norm gradient", at.layer);
  LAUNCH(queue, gpt_layer_norm_backward, Groups{at.rows}, reads(gradient), reads(at.in),
         reads(at.weight->data), reads(at.mean), reads(at.scale), writes(grad_in), at.rows, width);

  const Chunks chunks = chunks_of(at.rows, kChunkRows);
  const auto parts = [&] {
    return queue.floats(int64_t{chunks.count} * width, Role::kWorkspace,
                        "layer norm gradient parts", at.layer);
  };
  Tensor weight_parts = parts();
  Tensor bias_parts = parts();
  LAUNCH(queue, gpt_layer_norm_backward_weights,
         (Groups{round_up_quotient(width, kGroupLanes), chunks.count}), reads(gradient),
         reads(at.in), reads(at.mean), reads(at.scale), writes(weight_parts), writes(bias_parts),
         at.rows, width, chunks.rows);
  const auto total = [&](Tensor in, const Parameter& parameter) {
    return sum_parts(queue, std::move(in), width, chunks.count, Role::kGradient, parameter.name,
                     at.layer);
  };
  Tensor grad_weight = total(std::move(weight_parts), *at.weight);
  Tensor grad_bias = total(std::move(bias_parts), *at.bias);
  return {std::move(grad_in), std::move(grad_weight), std::move(grad_bias)};
}

}  // namespace

Variable layer_norm(const Context& context, const Variable& x, Parameter& weight, Parameter& bias,
                    int rows, const char* name) {
  const int width = weight.columns;
  Tensor out = context.output(int64_t{rows} * width, name);
  Tensor mean = context.output(rows, "mean");
  Tensor scale = context.output(rows, "scale");
  LAUNCH(context.queue, gpt_layer_norm, Groups{rows}, reads(x.data), reads(weight.data),
         reads(bias.data), writes(out), writes(mean), writes(scale), rows, width);
  return result(context, out, {x.node, weight.leaf, bias.leaf}, [&] {
    return [at = Saved{saved(x.data), saved(mean), saved(scale), &weight, &bias, rows,
                       context.layer}](Queue& queue, const Tensor& gradient) {
      return layer_norm_backward(at, queue, gradient);
    };
  });
}

}  // namespace gpt
