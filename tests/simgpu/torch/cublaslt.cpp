// SPDX-License-Identifier: Apache-2.0
// libcublasLt.so.13, as far as training calls it: one matrix product with a bias, ReLU or GELU
// behind it. The heuristic always offers one algorithm, which needs no workspace.

#include <cstdint>
#include <cstring>

#include "tests/simgpu/runtime/dead_stack.h"
#include "tests/simgpu/torch/cublas_codes.h"
#include "tests/simgpu/torch/stub.h"

namespace simgpu::torch {
namespace {

// Attributes and their values, as numbered in cublasLt.h.
enum DescriptorAttribute : int {
  kPointerMode = 2,
  kTransA = 3,
  kTransB = 4,
  kTransC = 5,
  kEpilogue = 7,
  kBiasPointer = 8,
  kSmCountTarget = 15,
  kAScalePointer = 17,
  kDOutScalePointer = 36,
};
enum LayoutAttribute : int { kLayoutBatchCount = 5, kLayoutBatchStride = 6 };
enum EpilogueBits : uint32_t { kPlain = 1, kRelu = 2, kBias = 4, kGelu = 32 };

struct Description {
  int scale_type = 0;
  int32_t pointer_mode = kPointerModeHost;
  int32_t transposed_a = 0;
  int32_t transposed_b = 0;
  int32_t transposed_c = 0;
  uint32_t epilogue = kPlain;
  const void* bias = nullptr;
  bool understood = true;
};

struct Layout {
  int type = 0;
  uint64_t rows = 0;
  uint64_t columns = 0;
  int64_t ld = 0;
  int32_t batch = 1;
  int64_t stride = 0;
};

struct Preference {};

struct Algorithm {
  uint64_t data[8];
};

struct HeuristicResult {
  Algorithm algorithm;
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

template <class T>
Status take(T* member, const void* value, size_t bytes) {
  if (value == nullptr || bytes != sizeof(T)) return kInvalidValue;
  std::memcpy(member, value, sizeof(T));
  return kSuccess;
}

bool modelled(const Description& what, const Layout& a, const Layout& b, const Layout& d) {
  GemmType type{};
  return what.understood && what.pointer_mode == kPointerModeHost && what.transposed_c == 0 &&
         (what.epilogue & ~uint32_t{kPlain | kRelu | kBias | kGelu}) == 0 && a.type == b.type &&
         to_gemm_type(a.type, &type) && to_gemm_type(d.type, &type);
}

double read_scalar(const void* scalar, int type) {
  constexpr int kDouble = 1;  // CUDA_R_64F
  return type == kDouble ? *static_cast<const double*>(scalar)
                         : double{*static_cast<const float*>(scalar)};
}

__attribute__((noinline)) Status multiply(const Description& what, const void* alpha, const void* a,
                                          const Layout& layout_a, const void* b,
                                          const Layout& layout_b, const void* beta, const void* c,
                                          const Layout& layout_c, void* d, const Layout& layout_d,
                                          void* workspace, size_t workspace_bytes,
                                          CUstream stream) {
  if (!modelled(what, layout_a, layout_b, layout_d)) return kNotSupported;
  GemmProblem problem{};
  problem.a = a;
  problem.b = b;
  problem.d = d;
  problem.alpha = read_scalar(alpha, what.scale_type);
  problem.beta = read_scalar(beta, what.scale_type);
  problem.c = problem.beta == 0 ? nullptr : c;
  problem.bias = (what.epilogue & kBias) != 0 ? what.bias : nullptr;
  problem.workspace = workspace;
  problem.workspace_bytes = static_cast<int64_t>(workspace_bytes);
  problem.lda = layout_a.ld;
  problem.ldb = layout_b.ld;
  problem.ldc = layout_c.ld;
  problem.ldd = layout_d.ld;
  problem.stride_a = layout_a.stride;
  problem.stride_b = layout_b.stride;
  problem.stride_c = layout_c.stride;
  problem.stride_d = layout_d.stride;
  problem.m = static_cast<int32_t>(layout_d.rows);
  problem.n = static_cast<int32_t>(layout_d.columns);
  problem.k =
      static_cast<int32_t>(what.transposed_a != kOperationN ? layout_a.rows : layout_a.columns);
  problem.batch = layout_d.batch;
  to_gemm_type(layout_a.type, &problem.type_ab);
  to_gemm_type(layout_d.type, &problem.type_d);
  problem.transposed_a = what.transposed_a != kOperationN ? 1 : 0;
  problem.transposed_b = what.transposed_b != kOperationN ? 1 : 0;
  problem.epilogue = ((what.epilogue & kBias) != 0 ? kEpilogueBias : 0) |
                     ((what.epilogue & kRelu) != 0 ? kEpilogueRelu : 0) |
                     ((what.epilogue & kGelu) != 0 ? kEpilogueGelu : 0);
  return to_status(launch_gemm(Door::kSymbol, stream, problem));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) size_t cublasLtGetVersion() {
  return 130100;  // 13.1, what the wheel was built with
}

SIMGPU_LIBRARY_API cublasLtMatmulDescCreate(Description** what, int, int scale_type) {
  *what = new Description;
  (*what)->scale_type = scale_type;
  return kSuccess;
}

SIMGPU_LIBRARY_API cublasLtMatmulDescDestroy(Description* what) {
  delete what;
  return kSuccess;
}

SIMGPU_LIBRARY_API cublasLtMatmulDescSetAttribute(Description* what, int attribute,
                                                  const void* value, size_t bytes) {
  switch (attribute) {
    case kPointerMode:
      return take(&what->pointer_mode, value, bytes);
    case kTransA:
      return take(&what->transposed_a, value, bytes);
    case kTransB:
      return take(&what->transposed_b, value, bytes);
    case kTransC:
      return take(&what->transposed_c, value, bytes);
    case kEpilogue:
      return take(&what->epilogue, value, bytes);
    case kBiasPointer:
      return take(&what->bias, value, bytes);
    default:
      // Scales and what else changes the result; the rest is about speed.
      if (attribute >= kAScalePointer && attribute <= kDOutScalePointer) what->understood = false;
      return kSuccess;
  }
}

SIMGPU_LIBRARY_API cublasLtMatrixLayoutCreate(Layout** layout, int type, uint64_t rows,
                                              uint64_t columns, int64_t ld) {
  *layout = new Layout{type, rows, columns, ld, 1, 0};
  return kSuccess;
}

SIMGPU_LIBRARY_API cublasLtMatrixLayoutDestroy(Layout* layout) {
  delete layout;
  return kSuccess;
}

SIMGPU_LIBRARY_API cublasLtMatrixLayoutSetAttribute(Layout* layout, int attribute,
                                                    const void* value, size_t bytes) {
  switch (attribute) {
    case kLayoutBatchCount:
      return take(&layout->batch, value, bytes);
    case kLayoutBatchStride:
      return take(&layout->stride, value, bytes);
    default:
      return kNotSupported;
  }
}

SIMGPU_LIBRARY_API cublasLtMatmulPreferenceCreate(Preference** preference) {
  *preference = new Preference;
  return kSuccess;
}

SIMGPU_LIBRARY_API cublasLtMatmulPreferenceDestroy(Preference* preference) {
  delete preference;
  return kSuccess;
}

SIMGPU_LIBRARY_API cublasLtMatmulPreferenceSetAttribute(Preference*, int, const void*, size_t) {
  return kSuccess;
}

SIMGPU_LIBRARY_API cublasLtMatmulAlgoGetHeuristic(void*, const Description* what, const Layout* a,
                                                  const Layout* b, const Layout*, const Layout* d,
                                                  const Preference*, int asked,
                                                  HeuristicResult* results, int* found) {
  *found = 0;
  if (asked <= 0) return kInvalidValue;
  if (!modelled(*what, *a, *b, *d)) {
    static int said;
    simgpu_stub_called("this kind of cublasLtMatmul", &said);
    return kNotSupported;
  }
  *results = {};
  results->waves = 1;
  *found = 1;
  return kSuccess;
}

SIMGPU_LIBRARY_API cublasLtMatmul(void*, const Description* what, const void* alpha, const void* a,
                                  const Layout* layout_a, const void* b, const Layout* layout_b,
                                  const void* beta, const void* c, const Layout* layout_c, void* d,
                                  const Layout* layout_d, const Algorithm*, void* workspace,
                                  size_t workspace_bytes, CUstream stream) {
  const Status status = multiply(*what, alpha, a, *layout_a, b, *layout_b, beta, c, *layout_c, d,
                                 *layout_d, workspace, workspace_bytes, stream);
  wipe_dead_stack();
  return status;
}

}  // namespace simgpu::torch
