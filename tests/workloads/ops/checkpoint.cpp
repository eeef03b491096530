// SPDX-License-Identifier: Apache-2.0
#include "tests/workloads/ops/ops.h"

namespace gpt {

Variable checkpoint(const Context& context, const Variable& x, Segment segment) {
  if (!context.recording) return segment(context, x);
  Context unrecorded = context;
  unrecorded.recording = false;
  Tensor out = segment(unrecorded, {x.data, nullptr}).data;
  out->role = Role::kActivation;
  return result(context, out, {x.node}, [&] {
    return [in = saved(x.data), segment = std::move(segment), layer = context.layer](
               Queue& queue, Tensor gradient) {
      auto grad_in = std::make_shared<Tensor>();
      const Variable start{in, make_leaf([grad_in](Queue&, Tensor g) { *grad_in = std::move(g); })};
      const Context recorded{queue, true, layer};
      Variable end = segment(recorded, start);
      end.data = nullptr;  // nobody reads the output again
      run_backward(queue, end.node, std::move(gradient));
      return std::vector<Tensor>{std::move(*grad_in)};
    };
  });
}

}  // namespace gpt
