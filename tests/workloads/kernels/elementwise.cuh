// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernels that treat each element alone. A group takes kGroupElements of them. Groups: (count, in
// groups' shares).

#include "tests/workloads/kernels/dialect.h"

constexpr int kGroupElements = 8 * kLanes;

// Calls body(first element, how many of kLanes exist) for each vector of the group.
template <typename Body>
LANE_FUNCTION void for_elements(int group, int64_t count, Body body) {
  const int64_t begin = int64_t(group) * kGroupElements;
  const int64_t end = begin + kGroupElements < count ? begin + kGroupElements : count;
  for (int64_t at = begin; at < end; at += kLanes) {
    body(at, end - at < kLanes ? int(end - at) : kLanes);
  }
}

KERNEL(gpt_add, const float* a, const float* b, float* out, int64_t count) {
  for_elements(group_x(), count, [&](int64_t at, int some) {
    store_some(out + at, some, load_some(a + at, some) + load_some(b + at, some));
  });
}

KERNEL(gpt_add_into, float* to, const float* a, int64_t count) {
  for_elements(group_x(), count, [&](int64_t at, int some) {
    store_some(to + at, some, load_some(to + at, some) + load_some(a + at, some));
  });
}

KERNEL(gpt_fill, float* out, float value, int64_t count) {
  for_elements(group_x(), count,
               [&](int64_t at, int some) { store_some(out + at, some, broadcast(value)); });
}

// GELU in its tanh form: x * (1 + tanh(u)) / 2 with u = sqrt(2 / pi) * (x + 0.044715 x^3), and
// (1 + tanh(u)) / 2 = 1 - 1 / (1 + e^(2u)).
constexpr float kGeluScale = 2.0f * 0.7978845608f;
constexpr float kGeluCube = 0.044715f;

LANE_FUNCTION Lanes gelu_gate(Lanes x) {
  const Lanes twice_u = kGeluScale * (x + kGeluCube * (x * x * x));
  return 1.0f - 1.0f / (1.0f + exponential(twice_u));
}

KERNEL(gpt_gelu, const float* in, float* out, int64_t count) {
  for_elements(group_x(), count, [&](int64_t at, int some) {
    const Lanes x = load_some(in + at, some);
    store_some(out + at, some, x * gelu_gate(x));
  });
}

KERNEL(gpt_gelu_backward, const float* grad_out, const float* in, float* grad_in, int64_t count) {
  for_elements(group_x(), count, [&](int64_t at, int some) {
    const Lanes x = load_some(in + at, some);
    const Lanes gate = gelu_gate(x);
    const Lanes slope =
        gate + x * gate * (1.0f - gate) * (kGeluScale * (1.0f + 3.0f * kGeluCube * (x * x)));
    store_some(grad_in + at, some, load_some(grad_out + at, some) * slope);
  });
}

// AdamW (Loshchilov and Hutter, arXiv 1711.05101). `step_size` is the learning rate over 1 -
// beta1^t, `root_scale` 1 / sqrt(1 - beta2^t), `keep` 1 - learning rate * weight decay.
KERNEL(gpt_adamw, float* weight, const float* grad, float* first, float* second, float beta1,
       float beta2, float step_size, float root_scale, float epsilon, float keep, int64_t count) {
  for_elements(group_x(), count, [&](int64_t at, int some) {
    const Lanes g = load_some(grad + at, some);
    const Lanes m = load_some(first + at, some) * beta1 + g * (1.0f - beta1);
    const Lanes v = load_some(second + at, some) * beta2 + g * g * (1.0f - beta2);
    store_some(first + at, some, m);
    store_some(second + at, some, v);
    const Lanes change = m * step_size / (square_root(v) * root_scale + epsilon);
    store_some(weight + at, some, load_some(weight + at, some) * keep - change);
  });
}
