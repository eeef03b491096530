// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/workloads/tests/twin_runner.h"

namespace gpt {
namespace {

struct Size {
  int batch, sequence, heads, head_width;
};

// One vector of queries, several, and a last one that is not full.
class Attention : public testing::TestWithParam<Size> {
 protected:
  Attention() {
    const Size size = GetParam();
    rows_ = int64_t{size.batch} * size.sequence * size.heads;
    count_ = rows_ * size.head_width;
    q_ = random_floats(count_, 1);
    k_ = random_floats(count_, 2);
    v_ = random_floats(count_, 3);
    weight_ = random_floats(count_, 4);
    out_ = unwritten(count_);
    log_sum_ = unwritten(rows_);
  }

  Groups groups() const {
    return {round_up_quotient(GetParam().sequence, kGroupLanes), GetParam().heads,
            GetParam().batch};
  }

  double forward() {
    const auto [batch, sequence, heads, head_width] = GetParam();
    run_twin("gpt_attention", groups(), read(q_), read(k_), read(v_), written(out_),
             written(log_sum_), batch, sequence, heads, head_width);
    return dot(out_, weight_);
  }

  int64_t rows_, count_;
  Floats q_, k_, v_, weight_, out_, log_sum_;
};
INSTANTIATE_TEST_SUITE_P(Sizes, Attention,
                         testing::Values(Size{1, 16, 1, 8}, Size{2, 40, 3, 16}, Size{1, 33, 2, 32},
                                         Size{2, 7, 1, 64}));

TEST_P(Attention, agrees_with_a_naive_softmax) {
  const Size size = GetParam();
  forward();
  const auto element = [&](int b, int t, int h, int d) {
    return ((int64_t{b} * size.sequence + t) * size.heads + h) * size.head_width + d;
  };
  for (int b = 0; b < size.batch; ++b) {
    for (int h = 0; h < size.heads; ++h) {
      for (int i = 0; i < size.sequence; ++i) {
        double total = 0.0;
        std::vector<double> p;
        for (int j = 0; j <= i; ++j) {
          double s = 0.0;
          for (int d = 0; d < size.head_width; ++d) {
            s += at(q_, element(b, i, h, d)) * at(k_, element(b, j, h, d));
          }
          p.push_back(std::exp(s / std::sqrt(double(size.head_width))));
          total += p.back();
        }
        for (int d = 0; d < size.head_width; ++d) {
          double value = 0.0;
          for (size_t j = 0; j < p.size(); ++j) {
            value += p[j] / total * at(v_, element(b, int(j), h, d));
          }
          ASSERT_NEAR(at(out_, element(b, i, h, d)), value, 2e-6) << b << " " << h << " " << i;
        }
        const int64_t row = (int64_t{b} * size.heads + h) * size.sequence + i;
        ASSERT_NEAR(at(log_sum_, row), std::log(total), 2e-6);
      }
    }
  }
}

TEST_P(Attention, backward_agrees_with_differences) {
  const auto [batch, sequence, heads, head_width] = GetParam();
  forward();
  Floats grad_q = unwritten(count_), grad_k = grad_q, grad_v = grad_q;
  Floats delta = unwritten(log_sum_.size());
  run_twin("gpt_attention_backward_query", groups(), read(q_), read(k_), read(v_), read(out_),
           read(weight_), read(log_sum_), written(grad_q), written(delta), batch, sequence, heads,
           head_width);
  run_twin("gpt_attention_backward_key_value", groups(), read(q_), read(k_), read(v_),
           read(weight_), read(log_sum_), read(delta), written(grad_k), written(grad_v), batch,
           sequence, heads, head_width);
  const auto function = [this] { return forward(); };
  expect_gradient(q_, grad_q, function);
  expect_gradient(k_, grad_k, function);
  expect_gradient(v_, grad_v, function);
}

}  // namespace
}  // namespace gpt
