// SPDX-License-Identifier: Apache-2.0
#include "tests/workloads/ops/grids.h"
#include "tests/workloads/ops/ops.h"

namespace gpt {
namespace {

struct Saved {
  Tensor q, k, v, out, log_sum;
  Shape shape;
  int heads;
  int layer;
};

Groups attention_groups(Shape shape, int heads) {
  return {round_up_quotient(shape.sequence, kGroupLanes), heads, shape.batch};
}

std::vector<Tensor> attention_backward(const Saved& at, Queue& queue, const Tensor& gradient) {
  const Groups groups = attention_groups(at.shape, at.heads);
  const int head_width = at.shape.width / at.heads;
  const auto like = [&](const char* name) {
    return queue.floats(at.shape.count(), Role::kTemporary, name, at.layer);
  };
  Tensor delta =
      queue.floats(int64_t{at.shape.rows()} * at.heads, Role::kWorkspace, "delta", at.layer);
  Tensor grad_q = like("query gradient");
  LAUNCH(queue, gpt_attention_backward_query, groups, reads(at.q), reads(at.k), reads(at.v),
         reads(at.out), reads(gradient), reads(at.log_sum), writes(grad_q), writes(delta),
         at.shape.batch, at.shape.sequence, at.heads, head_width);
  Tensor grad_k = like("key gradient");
  Tensor grad_v = like("value gradient");
  LAUNCH(queue, gpt_attention_backward_key_value, groups, reads(at.q), reads(at.k), reads(at.v),
         reads(gradient), reads(at.log_sum), reads(delta), writes(grad_k), writes(grad_v),
         at.shape.batch, at.shape.sequence, at.heads, head_width);
  return {std::move(grad_q), std::move(grad_k), std::move(grad_v)};
}

}  // namespace

Variable attention(const Context& context, const Variable& q, const Variable& k, const Variable& v,
                   Shape shape, int heads, const char* name) {
  Tensor out = context.output(shape.count(), name);
  Tensor log_sum = context.output(int64_t{shape.rows()} * heads, "attention log sums");
  LAUNCH(context.queue, gpt_attention, attention_groups(shape, heads), reads(q.data), reads(k.data),
         reads(v.data), writes(out), writes(log_sum), shape.batch, shape.sequence, heads,
         shape.width / heads);
  return result(context, out, {q.node, k.node, v.node}, [&] {
    return [at = Saved{saved(q.data), saved(k.data), saved(v.data), saved(out), saved(log_sum),
                       shape, heads, context.layer}](Queue& queue, const Tensor& gradient) {
      return attention_backward(at, queue, gradient);
    };
  });
}

}  // namespace gpt
