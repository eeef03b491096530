// SPDX-License-Identifier: Apache-2.0
#pragma once
// Grids of groups for kinds of kernels (kernels/dialect.h), and how long sums are cut into chunks.

#include <algorithm>
#include <cstdint>

#include "tests/workloads/kernels/launchers.h"

namespace gpt {

constexpr int64_t kGroupLanes = 16;               // kLanes of the dialect
constexpr int64_t kGroupShare = 8 * kGroupLanes;  // kGroupElements
constexpr int64_t kMatrixTileRows = 8;
constexpr int64_t kMatrixTileColumns = 32;

constexpr int64_t round_up_quotient(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

inline Groups element_groups(int64_t count) {
  return {round_up_quotient(count, kGroupShare)};
}
inline Groups vector_groups(int64_t count) {
  return {round_up_quotient(count, kGroupLanes)};
}

// A sum over all rows of a batch is cut into chunks, so that it has work for a GPU and fits a CPU's
// cache.
struct Chunks {
  int rows;  // of each but the last
  int count;
};
inline Chunks chunks_of(int rows, int chunk_rows) {
  return {chunk_rows, int(round_up_quotient(rows, chunk_rows))};
}

}  // namespace gpt
