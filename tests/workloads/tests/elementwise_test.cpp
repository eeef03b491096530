// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/workloads/tests/twin_runner.h"

namespace gpt {
namespace {

// More than one group's share, and a last vector that is not full.
constexpr int64_t kCount = 2 * kGroupShare + 21;

TEST(Elementwise, adds_and_fills_every_element) {
  const Floats a = random_floats(kCount, 1);
  const Floats b = random_floats(kCount, 2);
  Floats out = unwritten(kCount);
  run_twin("gpt_add", element_groups(kCount), read(a), read(b), written(out), kCount);
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], a[i] + b[i]) << i;
  run_twin("gpt_add_into", element_groups(kCount), updated(out), read(b), kCount);
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], a[i] + b[i] + b[i]) << i;
  run_twin("gpt_fill", element_groups(kCount), written(out), 0.25f, kCount);
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], 0.25f) << i;
}

double gelu_of(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}

TEST(Elementwise, gelu_agrees_with_libm_also_far_from_zero) {
  Floats x = random_floats(kCount, 3);
  for (float& value : x) value *= 30.0f;
  Floats out = unwritten(kCount);
  run_twin("gpt_gelu", element_groups(kCount), read(x), written(out), kCount);
  for (size_t i = 0; i < out.size(); ++i) {
    ASSERT_NEAR(double(out[i]), gelu_of(double(x[i])), 1e-6 * (1.0 + std::abs(double(x[i]))))
        << x[i];
  }
}

TEST(Elementwise, gelu_backward_agrees_with_differences) {
  Floats x = random_floats(kCount, 4);
  for (float& value : x) value *= 4.0f;
  const Floats outer = random_floats(kCount, 5);
  Floats out = unwritten(kCount), grad = unwritten(kCount);
  const auto forward = [&] {
    run_twin("gpt_gelu", element_groups(kCount), read(x), written(out), kCount);
    return dot(out, outer);
  };
  run_twin("gpt_gelu_backward", element_groups(kCount), read(outer), read(x), written(grad),
           kCount);
  expect_gradient(x, grad, forward);
}

TEST(Elementwise, adamw_agrees_with_its_definition) {
  Floats weight = random_floats(kCount, 6), first = random_floats(kCount, 7);
  Floats second = random_floats(kCount, 8);
  for (float& value : second) value = std::abs(value);
  const Floats grad = random_floats(kCount, 9);
  const Floats weight0 = weight, first0 = first, second0 = second;
  const double rate = 0.01, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, decay = 0.1;
  const int step = 3;
  const double correction1 = 1.0 - std::pow(beta1, step), correction2 = 1.0 - std::pow(beta2, step);
  run_twin("gpt_adamw", element_groups(kCount), updated(weight), read(grad), updated(first),
           updated(second), float(beta1), float(beta2), float(rate / correction1),
           float(1.0 / std::sqrt(correction2)), float(epsilon), float(1.0 - rate * decay), kCount);
  for (size_t i = 0; i < weight.size(); ++i) {
    const double g = double(grad[i]);
    const double m = beta1 * double(first0[i]) + (1.0 - beta1) * g;
    const double v = beta2 * double(second0[i]) + (1.0 - beta2) * g * g;
    ASSERT_NEAR(double(first[i]), m, 1e-6);
    ASSERT_NEAR(double(second[i]), v, 1e-6);
    const double expected = double(weight0[i]) * (1.0 - rate * decay) -
                            rate * (m / correction1) / (std::sqrt(v / correction2) + epsilon);
    ASSERT_NEAR(double(weight[i]), expected, 1e-5) << i;
  }
}

}  // namespace
}  // namespace gpt
