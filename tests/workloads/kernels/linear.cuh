// SPDX-License-Identifier: Apache-2.0
#pragma once
// Matrix products, row-major, and what their backward needs. Widths are multiples of kLanes; rows
// are free.

#include "tests/workloads/kernels/dialect.h"

constexpr int kTileRows = 8;
constexpr int kTileVectors = 2;  // of kLanes columns each
constexpr int kTileColumns = kTileVectors * kLanes;

// What one pass keeps in registers; a machine with 16 vector registers takes a tile in several
// passes.
constexpr int kPassRows = kManyVectorRegisters ? kTileRows : 4;
constexpr int kPassVectors = kManyVectorRegisters ? kTileVectors : 1;

// sum[r][v] += a(r, k) * b(k, v) over k, where a(r, k) is a[r * stride + k], or a[k * stride + r]
// if transposed.
template <bool transposed, int kRows, int kVectors>
LANE_FUNCTION void multiply_tile(const float* __restrict__ a, int stride,
                                 const float* __restrict__ b, int columns, int inner,
                                 Lanes (&sum)[kRows][kVectors]) {
  for (int k = 0; k < inner; ++k) {
    Lanes right[kVectors];
    UNROLL for (int v = 0; v < kVectors; ++v) {
      right[v] = load(b + size_t(k) * size_t(columns) + v * kLanes);
    }
    UNROLL for (int r = 0; r < kRows; ++r) {
      const float left = transposed ? a[size_t(k) * size_t(stride) + size_t(r)]
                                    : a[size_t(r) * size_t(stride) + size_t(k)];
      UNROLL for (int v = 0; v < kVectors; ++v) sum[r][v] += left * right[v];
    }
  }
}

template <bool transposed, int kRows, int kVectors>
LANE_FUNCTION void compute_pass(const float* __restrict__ a, int stride,
                                const float* __restrict__ b, const float* __restrict__ bias,
                                float* __restrict__ out, int columns, int inner) {
  Lanes sum[kRows][kVectors];
  UNROLL for (int v = 0; v < kVectors; ++v) {
    const Lanes start = bias != nullptr ? load(bias + v * kLanes) : broadcast(0.0f);
    UNROLL for (int r = 0; r < kRows; ++r) sum[r][v] = start;
  }
  multiply_tile<transposed, kRows, kVectors>(a, stride, b, columns, inner, sum);
  UNROLL for (int r = 0; r < kRows; ++r) {
    UNROLL for (int v = 0; v < kVectors; ++v) {
      store(out + size_t(r) * size_t(columns) + v * kLanes, sum[r][v]);
    }
  }
}

// A tile of kTileRows rows and kTileColumns columns, or half as many columns at the right edge.
template <bool transposed>
LANE_FUNCTION void compute_tile(const float* __restrict__ a, int stride,
                                const float* __restrict__ b, const float* __restrict__ bias,
                                float* __restrict__ out, int columns, int inner, bool whole) {
  for (int r = 0; r < kTileRows; r += kPassRows) {
    const float* rows = a + size_t(r) * (transposed ? 1 : size_t(stride));
    float* result = out + size_t(r) * size_t(columns);
    if (whole) {
      for (int v = 0; v < kTileVectors; v += kPassVectors) {
        const int shift = v * kLanes;
        compute_pass<transposed, kPassRows, kPassVectors>(rows, stride, b + shift,
                                                          bias != nullptr ? bias + shift : nullptr,
                                                          result + shift, columns, inner);
      }
    } else {
      compute_pass<transposed, kPassRows, 1>(rows, stride, b, bias, result, columns, inner);
    }
  }
}

// out[rows, columns] = a[rows, inner] b[inner, columns] + bias[columns], bias may be null.
// Groups: (tiles of rows, tiles of columns).
KERNEL(gpt_matmul, const float* a, const float* b, const float* bias, float* out, int rows,
       int columns, int inner) {
  const int row = group_x() * kTileRows;
  const int column = group_y() * kTileColumns;
  if (row >= rows) return;
  a += size_t(row) * size_t(inner);
  b += column;
  if (bias != nullptr) bias += column;
  out += size_t(row) * size_t(columns) + size_t(column);
  const bool whole = column + kTileColumns <= columns;
  if (row + kTileRows <= rows) {
    compute_tile<false>(a, inner, b, bias, out, columns, inner, whole);
    return;
  }
  for (int r = 0; r < rows - row; ++r) {
    for (int v = 0; v < (whole ? kTileVectors : 1); ++v) {
      const int shift = v * kLanes;
      compute_pass<false, 1, 1>(a + size_t(r) * size_t(inner), inner, b + shift,
                                bias != nullptr ? bias + shift : nullptr,
                                out + size_t(r) * size_t(columns) + shift, columns, inner);
    }
  }
}

// out[chunk][inner, columns] = a[rows of chunk, inner]^T b[rows of chunk, columns]: the weight's
// gradient, in parts that gpt_sum_parts adds. Groups: (tiles of inner, tiles of columns, chunks).
KERNEL(gpt_matmul_transposed, const float* a, const float* b, float* out, int rows, int columns,
       int inner, int chunk_rows) {
  const int row = group_x() * kTileRows;
  const int column = group_y() * kTileColumns;
  if (row >= inner) return;
  const int first = group_z() * chunk_rows;
  const int count = rows - first < chunk_rows ? rows - first : chunk_rows;
  a += size_t(first) * size_t(inner) + size_t(row);
  b += size_t(first) * size_t(columns) + size_t(column);
  out += (size_t(group_z()) * size_t(inner) + size_t(row)) * size_t(columns) + size_t(column);
  compute_tile<true>(a, inner, b, nullptr, out, columns, count, column + kTileColumns <= columns);
}

// out[columns, rows] = in[rows, columns]^T. Groups: (rows of out, vectors of its columns).
KERNEL(gpt_transpose, const float* in, float* out, int rows, int columns) {
  const int row = group_x();
  const int column = group_y() * kLanes;
  if (row >= columns) return;
  const int count = rows - column < kLanes ? rows - column : kLanes;
  store_some(out + size_t(row) * size_t(rows) + column, count,
             gather(in + size_t(column) * size_t(columns) + row, size_t(columns), count));
}

// out[chunk][columns] = the sum of the chunk's rows. Groups: (vectors of columns, chunks).
KERNEL(gpt_column_sums, const float* in, float* out, int rows, int columns, int chunk_rows) {
  const int column = group_x() * kLanes;
  if (column >= columns) return;
  const int first = group_y() * chunk_rows;
  const int end = rows - first < chunk_rows ? rows : first + chunk_rows;
  Lanes sum = broadcast(0.0f);
  for (int row = first; row < end; ++row) {
    sum += load(in + size_t(row) * size_t(columns) + column);
  }
  store(out + size_t(group_y()) * size_t(columns) + column, sum);
}

// out[count] = sum over parts of in[part][count], first part first. Groups: (vectors).
KERNEL(gpt_sum_parts, const float* in, float* out, int count, int parts) {
  const int first = group_x() * kLanes;
  if (first >= count) return;
  const int some = count - first < kLanes ? count - first : kLanes;
  Lanes sum = broadcast(0.0f);
  for (int part = 0; part < parts; ++part) {
    sum += load_some(in + size_t(part) * size_t(count) + first, some);
  }
  store_some(out + first, some, sum);
}
