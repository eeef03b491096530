// SPDX-License-Identifier: Apache-2.0
#include "tests/workloads/kernels/dialect.h"
#include "tests/workloads/ops/grids.h"
#include "tests/workloads/ops/ops.h"

namespace gpt {

Tensor add_tensors(Queue& queue, const Tensor& a, const Tensor& b) {
  const int64_t count = a->bytes / int64_t{sizeof(float)};
  Tensor out = queue.floats(count, Role::kTemporary, a->name, a->layer);
  LAUNCH(queue, gpt_add, element_groups(count), reads(a), reads(b), writes(out), count);
  return out;
}

void add_into(Queue& queue, const Tensor& sum, const Tensor& a) {
  const int64_t count = sum->bytes / int64_t{sizeof(float)};
  LAUNCH(queue, gpt_add_into, element_groups(count), updates(sum), reads(a), count);
}

Tensor filled(Queue& queue, float value, int64_t count, Role role, const char* name) {
  Tensor out = queue.floats(count, role, name, -1);
  LAUNCH(queue, gpt_fill, element_groups(count), writes(out), value, count);
  return out;
}

Tensor sum_parts(Queue& queue, Tensor in, int64_t count, int parts, Role role, const char* name,
                 int layer) {
  if (parts == 1) {
    in->role = role;
    in->name = name;
    return in;
  }
  Tensor out = queue.floats(count, role, name, layer);
  LAUNCH(queue, gpt_sum_parts, vector_groups(count), reads(in), writes(out), count, parts);
  return out;
}

Variable gelu(const Context& context, const Variable& x, int64_t count, const char* name) {
  Tensor out = context.output(count, name);
  LAUNCH(context.queue, gpt_gelu, element_groups(count), reads(x.data), writes(out), count);
  return result(context, out, {x.node}, [&] {
    return
        [in = saved(x.data), count, layer = context.layer](Queue& queue, const Tensor& gradient) {
          Tensor grad_in = queue.floats(count, Role::kTemporary, "gelu gradient", layer);
          LAUNCH(queue, gpt_gelu_backward, element_groups(count), reads(gradient), reads(in),
                 writes(grad_in), count);
          return std::vector<Tensor>{std::move(grad_in)};
        };
  });
}

Variable add(const Context& context, const Variable& a, const Variable& b, int64_t count,
             const char* name) {
  Tensor out = context.output(count, name);
  LAUNCH(context.queue, gpt_add, element_groups(count), reads(a.data), reads(b.data), writes(out),
         count);
  return result(context, out, {a.node, b.node}, [] {
    return [](Queue&, const Tensor& gradient) { return std::vector<Tensor>{gradient, gradient}; };
  });
}

void Parameter::receive(Queue& queue, Tensor next) {
  if (gradient == nullptr) {
    gradient = std::move(next);
    return;
  }
  next->role = Role::kTemporary;
  add_into(queue, gradient, next);
}

}  // namespace gpt
