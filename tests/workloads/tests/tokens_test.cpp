// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/workloads/random.h"
#include "tests/workloads/tests/twin_runner.h"

namespace gpt {
namespace {

constexpr int kBatch = 3;
constexpr int kSequence = 7;
constexpr int kRows = kBatch * kSequence;
constexpr int kWidth = 32;
constexpr int kWords = 48;
constexpr int kPositions = 9;  // more than the sequence has

std::vector<int> random_tokens(uint64_t seed) {
  Random random(seed);
  std::vector<int> tokens(kRows);
  for (int& token : tokens) token = int(random.below(kWords));
  tokens[1] = tokens[0];  // a row that is read twice
  return tokens;
}

TEST(Embedding, backward_agrees_with_differences_and_unused_positions_get_zero) {
  const std::vector<int> tokens = random_tokens(1);
  Floats words = random_floats(kWords * kWidth, 2);
  Floats positions = random_floats(kPositions * kWidth, 3);
  const Floats outer = random_floats(kRows * kWidth, 4);
  Floats out = unwritten(kRows * kWidth);
  const auto forward = [&] {
    run_twin("gpt_embedding", Groups{kRows}, read(tokens), read(words),
             read(positions, kSequence * kWidth), written(out), kRows, kSequence, kWidth, kWords);
    return dot(out, outer);
  };
  forward();
  EXPECT_EQ(out[5], float(at(words, tokens[0] * kWidth + 5)) + positions[5]);
  const int row = kSequence + 2;  // of the second sequence
  EXPECT_EQ(float(at(out, row * kWidth)),
            float(at(words, tokens[row] * kWidth)) + positions[2 * kWidth]);

  const int chunk = 4;
  const int chunks = int(round_up_quotient(kRows, chunk));
  Floats parts = unwritten(chunks * kWords * kWidth);
  run_twin("gpt_embedding_backward_tokens", Groups{kWidth / kGroupLanes, chunks}, read(tokens),
           read(outer), written(parts), kRows, kWidth, kWords, chunk);
  Floats grad_words = unwritten(kWords * kWidth);
  run_twin("gpt_sum_parts", vector_groups(kWords * kWidth), read(parts), written(grad_words),
           kWords * kWidth, chunks);
  Floats grad_positions = unwritten(kPositions * kWidth);
  run_twin("gpt_embedding_backward_positions", Groups{kPositions}, read(outer),
           written(grad_positions), kBatch, kSequence, kPositions, kWidth);
  expect_gradient(words, grad_words, forward);
  expect_gradient(positions, grad_positions, forward);
  for (int i = kSequence * kWidth; i < kPositions * kWidth; ++i) {
    ASSERT_EQ(at(grad_positions, i), 0.0);
  }
}

class CrossEntropy : public testing::Test {
 protected:
  double forward() {
    run_twin("gpt_cross_entropy", Groups{kRows}, read(logits_), read(targets_),
             written(log_probability_), written(row_loss_), kRows, kWords);
    run_twin("gpt_mean", Groups{1}, read(row_loss_), written(loss_), kRows);
    return double(loss_[0]);
  }

  std::vector<int> targets_ = random_tokens(5);
  Floats logits_ = random_floats(kRows * kWords, 6);
  Floats log_probability_ = unwritten(kRows * kWords);
  Floats row_loss_ = unwritten(kRows);
  Floats loss_ = unwritten(1);
};

TEST_F(CrossEntropy, agrees_with_a_naive_sum_also_for_large_logits) {
  for (float& logit : logits_) logit *= 60.0f;
  forward();
  double mean = 0.0;
  for (int row = 0; row < kRows; ++row) {
    double total = 0.0;
    for (int c = 0; c < kWords; ++c) total += std::exp(at(logits_, row * kWords + c));
    mean += std::log(total) - at(logits_, row * kWords + targets_[size_t(row)]);
  }
  EXPECT_NEAR(double(loss_[0]), mean / kRows, 1e-4);
}

TEST_F(CrossEntropy, backward_agrees_with_differences) {
  forward();
  const Floats outer = {0.75f};
  Floats grad = unwritten(kRows * kWords);
  run_twin("gpt_cross_entropy_backward", Groups{kRows}, read(log_probability_), read(targets_),
           read(outer), written(grad), kRows, kWords);
  expect_gradient(logits_, grad, [&] { return 0.75 * forward(); });
}

}  // namespace
}  // namespace gpt
