// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/workloads/tests/twin_runner.h"

namespace gpt {
namespace {

Groups tiles(int rows, int columns, int chunks = 1) {
  return {round_up_quotient(rows, kMatrixTileRows), round_up_quotient(columns, kMatrixTileColumns),
          chunks};
}

struct Size {
  int rows, columns, inner;
};

// Whole tiles, a half tile at the right edge, rows left over, and both.
class Matmul : public testing::TestWithParam<Size> {};
INSTANTIATE_TEST_SUITE_P(Sizes, Matmul,
                         testing::Values(Size{8, 32, 16}, Size{24, 48, 32}, Size{13, 64, 48},
                                         Size{3, 16, 80}, Size{100, 208, 64}));

TEST_P(Matmul, agrees_with_a_naive_product) {
  const auto [rows, columns, inner] = GetParam();
  const Floats a = random_floats(rows * inner, 1);
  const Floats b = random_floats(inner * columns, 2);
  const Floats bias = random_floats(columns, 3);
  for (const bool with_bias : {true, false}) {
    Floats out = unwritten(rows * columns);
    run_twin("gpt_matmul", tiles(rows, columns), read(a), read(b), with_bias ? read(bias) : null(),
             written(out), rows, columns, inner);
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) {
        double sum = with_bias ? at(bias, c) : 0.0;
        for (int k = 0; k < inner; ++k) {
          sum += at(a, r * inner + k) * at(b, k * columns + c);
        }
        ASSERT_NEAR(at(out, r * columns + c), sum, 1e-4) << r << " " << c;
      }
    }
  }
}

TEST_P(Matmul, weight_gradient_in_chunks_agrees_with_a_naive_product) {
  const auto [rows, columns, inner] = GetParam();
  const int chunk = 7;
  const int chunks = int(round_up_quotient(rows, chunk));
  const Floats a = random_floats(rows * inner, 1);
  const Floats b = random_floats(rows * columns, 2);
  Floats parts = unwritten(chunks * inner * columns);
  Floats out = unwritten(inner * columns);
  run_twin("gpt_matmul_transposed", tiles(inner, columns, chunks), read(a), read(b), written(parts),
           rows, columns, inner, chunk);
  run_twin("gpt_sum_parts", vector_groups(inner * columns), read(parts), written(out),
           inner * columns, chunks);
  for (int k = 0; k < inner; ++k) {
    for (int c = 0; c < columns; ++c) {
      double sum = 0.0;
      for (int r = 0; r < rows; ++r) {
        sum += at(a, r * inner + k) * at(b, r * columns + c);
      }
      ASSERT_NEAR(at(out, k * columns + c), sum, 1e-4) << k << " " << c;
    }
  }
}

TEST_P(Matmul, transpose_exchanges_rows_and_columns) {
  const auto [rows, columns, inner] = GetParam();
  const Floats in = random_floats(rows * columns, 4);
  Floats out = unwritten(in.size());
  run_twin("gpt_transpose", Groups{columns, round_up_quotient(rows, kGroupLanes)}, read(in),
           written(out), rows, columns);
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      ASSERT_EQ(at(out, c * rows + r), at(in, r * columns + c)) << inner;
    }
  }
}

TEST_P(Matmul, column_sums_cover_each_row_once) {
  const auto [rows, columns, inner] = GetParam();
  const int chunk = 5;
  const int chunks = int(round_up_quotient(rows, chunk));
  const Floats in = random_floats(rows * columns, 5);
  Floats parts = unwritten(chunks * columns);
  Floats out = unwritten(columns);
  run_twin("gpt_column_sums", Groups{round_up_quotient(columns, kGroupLanes), chunks}, read(in),
           written(parts), rows, columns, chunk);
  run_twin("gpt_sum_parts", vector_groups(columns), read(parts), written(out), columns, chunks);
  for (int c = 0; c < columns; ++c) {
    double sum = 0.0;
    for (int r = 0; r < rows; ++r) sum += at(in, r * columns + c);
    EXPECT_NEAR(at(out, c), sum, 1e-5) << inner;
  }
}

}  // namespace
}  // namespace gpt
