// SPDX-License-Identifier: Apache-2.0
#pragma once
// A matrix product as the stand-in cuBLAS hands it to its kernels, as one struct by value:
// D = epilogue(alpha op(A) op(B) + beta C), column-major, `batch` times.

#include <cstdint>

namespace simgpu::torch {

enum class GemmType : int32_t { kFloat, kHalf, kBfloat16, kDouble };

inline constexpr int64_t element_bytes(GemmType type) {
  switch (type) {
    case GemmType::kFloat:
      return 4;
    case GemmType::kDouble:
      return 8;
    default:
      return 2;
  }
}

// Bits of GemmProblem::epilogue.
inline constexpr int32_t kEpilogueBias = 1;  // adds bias[row]
inline constexpr int32_t kEpilogueRelu = 2;
inline constexpr int32_t kEpilogueGelu = 4;

// No padding: what is passed has no bytes that nobody wrote.
struct GemmProblem {
  const void* a;
  const void* b;
  const void* c;  // null if beta is 0
  void* d;
  const void* bias;  // null without kEpilogueBias; of D's type
  void* workspace;   // may be null
  int64_t workspace_bytes;
  int64_t lda, ldb, ldc, ldd;
  int64_t stride_a, stride_b, stride_c, stride_d;  // elements from one batch to the next
  double alpha, beta;
  int32_t m, n, k, batch;
  GemmType type_ab, type_d;  // C is of D's type
  int32_t transposed_a, transposed_b;
  int32_t epilogue;
  int32_t unused;
};

inline constexpr const char* kGemmTypeNames[] = {"f32", "f16", "bf16", "f64"};

}  // namespace simgpu::torch
