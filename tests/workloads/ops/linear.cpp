// SPDX-License-Identifier: Apache-2.0
#include "tests/workloads/ops/grids.h"
#include "tests/workloads/ops/ops.h"

namespace gpt {
namespace {

constexpr int kChunkRows = 512;

void matmul(Queue& queue, const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& out,
            int rows, int columns, int inner) {
  const Groups tiles{round_up_quotient(rows, kMatrixTileRows),
                     round_up_quotient(columns, kMatrixTileColumns)};
  LAUNCH(queue, gpt_matmul, tiles, reads(a), reads(b), reads(bias), writes(out), rows, columns,
         inner);
}

Tensor input_gradient(Queue& queue, const Tensor& gradient, const Parameter& weight, int rows,
                      int layer) {
  Tensor transposed = queue.floats(weight.count(), Role::kWorkspace, "transposed weight", layer);
  LAUNCH(queue, gpt_transpose,
         (Groups{weight.columns, round_up_quotient(weight.rows, kGroupLanes)}), reads(weight.data),
         writes(transposed), weight.rows, weight.columns);
  Tensor out = queue.floats(int64_t{rows} * weight.rows, Role::kTemporary, "input gradient", layer);
  matmul(queue, gradient, transposed, nullptr, out, rows, weight.rows, weight.columns);
  return out;
}

Tensor weight_gradient(Queue& queue, const Tensor& x, const Tensor& gradient,
                       const Parameter& weight, int rows, int layer) {
  const Chunks chunks = chunks_of(rows, kChunkRows);
  Tensor parts =
      queue.floats(chunks.count * weight.count(), Role::kWorkspace, "weight gradient parts", layer);
  const Groups tiles{round_up_quotient(weight.rows, kMatrixTileRows),
                     round_up_quotient(weight.columns, kMatrixTileColumns), chunks.count};
  LAUNCH(queue, gpt_matmul_transposed, tiles, reads(x), reads(gradient), writes(parts), rows,
         weight.columns, weight.rows, chunks.rows);
  return sum_parts(queue, std::move(parts), weight.count(), chunks.count, Role::kGradient,
                   weight.name, layer);
}

Tensor bias_gradient(Queue& queue, const Tensor& gradient, const Parameter& bias, int rows,
                     int layer) {
  const Chunks chunks = chunks_of(rows, kChunkRows);
  Tensor parts =
      queue.floats(chunks.count * bias.count(), Role::kWorkspace, "bias gradient parts", layer);
  LAUNCH(queue, gpt_column_sums,
         (Groups{round_up_quotient(bias.columns, kGroupLanes), chunks.count}), reads(gradient),
         writes(parts), rows, bias.columns, chunks.rows);
  return sum_parts(queue, std::move(parts), bias.count(), chunks.count, Role::kGradient, bias.name,
                   layer);
}

}  // namespace

Variable linear(const Context& context, const Variable& x, Parameter& weight, Parameter* bias,
                int rows, const char* name) {
  Tensor out = context.output(int64_t{rows} * weight.columns, name);
  matmul(context.queue, x.data, weight.data, bias != nullptr ? bias->data : nullptr, out, rows,
         weight.columns, weight.rows);
  std::vector<std::shared_ptr<Node>> inputs = {x.node, weight.leaf};
  if (bias != nullptr) inputs.push_back(bias->leaf);
  return result(context, out, std::move(inputs), [&] {
    return [in = saved(x.data), weight = &weight, bias, rows, layer = context.layer](
               Queue& queue, const Tensor& gradient) {
      std::vector<Tensor> gradients;
      gradients.push_back(input_gradient(queue, gradient, *weight, rows, layer));
      gradients.push_back(weight_gradient(queue, in, gradient, *weight, rows, layer));
      if (bias != nullptr) {
        gradients.push_back(bias_gradient(queue, gradient, *bias, rows, layer));
      }
      return gradients;
    };
  });
}

}  // namespace gpt
