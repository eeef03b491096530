// SPDX-License-Identifier: Apache-2.0
#pragma once
// Layer normalisation over rows of `width` floats (a multiple of kLanes). `mean` and `scale` (1 /
// standard deviation) hold one float a row.

#include "tests/workloads/kernels/dialect.h"

constexpr float kLayerNormEpsilon = 1e-5f;

// Groups: (rows).
KERNEL(gpt_layer_norm, const float* in, const float* weight, const float* bias, float* out,
       float* mean, float* scale, int rows, int width) {
  const int row = group_x();
  if (row >= rows) return;
  const float* x = in + size_t(row) * size_t(width);
  float* y = out + size_t(row) * size_t(width);
  Lanes sum = broadcast(0.0f);
  for (int c = 0; c < width; c += kLanes) sum += load(x + c);
  const float average = sum_lanes(sum) / float(width);
  Lanes squares = broadcast(0.0f);
  for (int c = 0; c < width; c += kLanes) {
    const Lanes centred = load(x + c) - average;
    squares += centred * centred;
  }
  const float variance = sum_lanes(squares) / float(width);
  const float factor = 1.0f / scalar_square_root(variance + kLayerNormEpsilon);
  for (int c = 0; c < width; c += kLanes) {
    store(y + c, (load(x + c) - average) * factor * load(weight + c) + load(bias + c));
  }
  store_one(mean + row, average);
  store_one(scale + row, factor);
}

// Groups: (rows).
KERNEL(gpt_layer_norm_backward, const float* grad_out, const float* in, const float* weight,
       const float* mean, const float* scale, float* grad_in, int rows, int width) {
  const int row = group_x();
  if (row >= rows) return;
  const size_t start = size_t(row) * size_t(width);
  const float average = mean[row];
  const float factor = scale[row];
  Lanes sum = broadcast(0.0f);
  Lanes dot = broadcast(0.0f);
  for (int c = 0; c < width; c += kLanes) {
    const Lanes normal = (load(in + start + c) - average) * factor;
    const Lanes grad = load(grad_out + start + c) * load(weight + c);
    sum += grad;
    dot += grad * normal;
  }
  const float mean_grad = sum_lanes(sum) / float(width);
  const float mean_dot = sum_lanes(dot) / float(width);
  for (int c = 0; c < width; c += kLanes) {
    const Lanes normal = (load(in + start + c) - average) * factor;
    const Lanes grad = load(grad_out + start + c) * load(weight + c);
    store(grad_in + start + c, (grad - mean_grad - normal * mean_dot) * factor);
  }
}

// Per chunk of rows, the sums of the weight's and the bias's gradients; gpt_sum_parts adds the
// chunks. Groups: (vectors of columns, chunks).
KERNEL(gpt_layer_norm_backward_weights, const float* grad_out, const float* in, const float* mean,
       const float* scale, float* grad_weight, float* grad_bias, int rows, int width,
       int chunk_rows) {
  const int column = group_x() * kLanes;
  if (column >= width) return;
  const int first = group_y() * chunk_rows;
  const int end = rows - first < chunk_rows ? rows : first + chunk_rows;
  Lanes weight_sum = broadcast(0.0f);
  Lanes bias_sum = broadcast(0.0f);
  for (int row = first; row < end; ++row) {
    const size_t at = size_t(row) * size_t(width) + size_t(column);
    const Lanes grad = load(grad_out + at);
    weight_sum += grad * ((load(in + at) - mean[row]) * scale[row]);
    bias_sum += grad;
  }
  const size_t to = size_t(group_y()) * size_t(width) + size_t(column);
  store(grad_weight + to, weight_sum);
  store(grad_bias + to, bias_sum);
}
