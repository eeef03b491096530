// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/workloads/tests/twin_runner.h"

namespace gpt {
namespace {

constexpr int kRows = 11;
constexpr int kWidth = 48;

class LayerNorm : public testing::Test {
 protected:
  double forward() {
    run_twin("gpt_layer_norm", Groups{kRows}, read(in_), read(weight_), read(bias_), written(out_),
             written(mean_), written(scale_), kRows, kWidth);
    return dot(out_, outer_);
  }

  Floats in_ = random_floats(kRows * kWidth, 1);
  Floats weight_ = random_floats(kWidth, 2);
  Floats bias_ = random_floats(kWidth, 3);
  Floats outer_ = random_floats(kRows * kWidth, 4);
  Floats out_ = unwritten(kRows * kWidth);
  Floats mean_ = unwritten(kRows);
  Floats scale_ = unwritten(kRows);
};

TEST_F(LayerNorm, rows_come_out_with_mean_0_and_variance_1) {
  weight_.assign(kWidth, 1.0f);
  bias_.assign(kWidth, 0.0f);
  forward();
  for (int row = 0; row < kRows; ++row) {
    double sum = 0.0, squares = 0.0, in_sum = 0.0;
    for (int c = 0; c < kWidth; ++c) {
      const double y = at(out_, row * kWidth + c);
      sum += y;
      squares += y * y;
      in_sum += at(in_, row * kWidth + c);
    }
    EXPECT_NEAR(sum / kWidth, 0.0, 1e-6);
    EXPECT_NEAR(squares / kWidth, 1.0, 1e-3);
    EXPECT_NEAR(at(mean_, row), in_sum / kWidth, 1e-6);
  }
}

TEST_F(LayerNorm, backward_agrees_with_differences) {
  forward();
  Floats grad_in = unwritten(kRows * kWidth);
  run_twin("gpt_layer_norm_backward", Groups{kRows}, read(outer_), read(in_), read(weight_),
           read(mean_), read(scale_), written(grad_in), kRows, kWidth);
  const int chunk = 4;
  const int chunks = int(round_up_quotient(kRows, chunk));
  Floats weight_parts = unwritten(chunks * kWidth);
  Floats bias_parts = weight_parts;
  run_twin("gpt_layer_norm_backward_weights",
           Groups{round_up_quotient(kWidth, kGroupLanes), chunks}, read(outer_), read(in_),
           read(mean_), read(scale_), written(weight_parts), written(bias_parts), kRows, kWidth,
           chunk);
  Floats grad_weight = unwritten(kWidth), grad_bias = grad_weight;
  run_twin("gpt_sum_parts", vector_groups(kWidth), read(weight_parts), written(grad_weight), kWidth,
           chunks);
  run_twin("gpt_sum_parts", vector_groups(kWidth), read(bias_parts), written(grad_bias), kWidth,
           chunks);
  const auto function = [this] { return forward(); };
  expect_gradient(in_, grad_in, function);
  expect_gradient(weight_, grad_weight, function);
  expect_gradient(bias_, grad_bias, function);
}

}  // namespace
}  // namespace gpt
