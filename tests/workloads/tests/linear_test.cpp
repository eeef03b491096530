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
    Floats out(size_t(rows * columns), -99.0f);
    run_twin("gpt_matmul", tiles(rows, columns), read(a), read(b), with_bias ? read(bias) : null(),
             written(out), rows, columns, inner);
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) {
        double sum = with_bias ? double(bias[size_t(c)]) : 0.0;
        for (int k = 0; k < inner; ++k) {
          sum += double(a[size_t(r * inner + k)]) * double(b[size_t(k * columns + c)]);
        }
        ASSERT_NEAR(double(out[size_t(r * columns + c)]), sum, 1e-4) << r << " " << c;
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
  Floats parts(size_t(chunks * inner * columns), -99.0f);
  Floats out(size_t(inner * columns), -99.0f);
  run_twin("gpt_matmul_transposed", tiles(inner, columns, chunks), read(a), read(b), written(parts),
           rows, columns, inner, chunk);
  run_twin("gpt_sum_parts", vector_groups(inner * columns), read(parts), written(out),
           inner * columns, chunks);
  for (int k = 0; k < inner; ++k) {
    for (int c = 0; c < columns; ++c) {
      double sum = 0.0;
      for (int r = 0; r < rows; ++r) {
        sum += double(a[size_t(r * inner + k)]) * double(b[size_t(r * columns + c)]);
      }
      ASSERT_NEAR(double(out[size_t(k * columns + c)]), sum, 1e-4) << k << " " << c;
    }
  }
}

TEST_P(Matmul, transpose_exchanges_rows_and_columns) {
  const auto [rows, columns, inner] = GetParam();
  const Floats in = random_floats(rows * columns, 4);
  Floats out(in.size(), -99.0f);
  run_twin("gpt_transpose", Groups{columns, round_up_quotient(rows, kGroupLanes)}, read(in),
           written(out), rows, columns);
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      ASSERT_EQ(out[size_t(c * rows + r)], in[size_t(r * columns + c)]) << inner;
    }
  }
}

TEST_P(Matmul, column_sums_cover_each_row_once) {
  const auto [rows, columns, inner] = GetParam();
  const int chunk = 5;
  const int chunks = int(round_up_quotient(rows, chunk));
  const Floats in = random_floats(rows * columns, 5);
  Floats parts(size_t(chunks * columns), -99.0f);
  Floats out(size_t(columns), -99.0f);
  run_twin("gpt_column_sums", Groups{round_up_quotient(columns, kGroupLanes), chunks}, read(in),
           written(parts), rows, columns, chunk);
  run_twin("gpt_sum_parts", vector_groups(columns), read(parts), written(out), columns, chunks);
  for (int c = 0; c < columns; ++c) {
    double sum = 0.0;
    for (int r = 0; r < rows; ++r) sum += double(in[size_t(r * columns + c)]);
    EXPECT_NEAR(double(out[size_t(c)]), sum, 1e-5) << inner;
  }
}

}  // namespace
}  // namespace gpt
