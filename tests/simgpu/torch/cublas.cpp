// SPDX-License-Identifier: Apache-2.0
// libcublas.so.13, as far as training calls it: handles, streams, and matrix products of float,
// half, bfloat16 and double with scalars on the host. The rest is generated (stubs.py).

#include <cstdint>

#include "tests/simgpu/runtime/dead_stack.h"
#include "tests/simgpu/torch/cublas_codes.h"
#include "tests/simgpu/torch/stub.h"

namespace simgpu::torch {
namespace {

struct Handle {
  CUstream stream = nullptr;
  int math_mode = 0;
  int pointer_mode = kPointerModeHost;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

// What all the entries come down to. `scalar` is float, or double for products of doubles.
struct Call {
  Handle* handle;
  int transposed_a, transposed_b;
  int m, n, k;
  const void* alpha;
  const void* a;
  int type_a, lda;
  int64_t stride_a;
  const void* b;
  int type_b, ldb;
  int64_t stride_b;
  const void* beta;
  void* c;
  int type_c, ldc;
  int64_t stride_c;
  int batch;
};

double read_scalar(const void* scalar, GemmType type) {
  return type == GemmType::kDouble ? *static_cast<const double*>(scalar)
                                   : double{*static_cast<const float*>(scalar)};
}

Status refuse(const char* what) {
  static int said;
  simgpu_stub_called(what, &said);
  return kNotSupported;
}

__attribute__((noinline)) Status multiply(const Call& call) {
  if (call.handle == nullptr) return kNotInitialized;
  if (call.handle->pointer_mode != kPointerModeHost) {
    return refuse("cuBLAS with scalars in device memory");
  }
  if (call.m < 0 || call.n < 0 || call.k < 0 || call.batch < 0) return kInvalidValue;
  GemmProblem problem{};
  if (call.type_a != call.type_b || !to_gemm_type(call.type_a, &problem.type_ab) ||
      !to_gemm_type(call.type_c, &problem.type_d)) {
    return refuse("cuBLAS with these element types");
  }
  problem.alpha = read_scalar(call.alpha, problem.type_ab);
  problem.beta = read_scalar(call.beta, problem.type_ab);
  problem.a = call.a;
  problem.b = call.b;
  problem.c = problem.beta == 0 ? nullptr : call.c;
  problem.d = call.c;
  problem.workspace = call.handle->workspace;
  problem.workspace_bytes = static_cast<int64_t>(call.handle->workspace_bytes);
  problem.lda = call.lda;
  problem.ldb = call.ldb;
  problem.ldc = problem.ldd = call.ldc;
  problem.stride_a = call.stride_a;
  problem.stride_b = call.stride_b;
  problem.stride_c = problem.stride_d = call.stride_c;
  problem.m = call.m;
  problem.n = call.n;
  problem.k = call.k;
  problem.batch = call.batch;
  problem.transposed_a = call.transposed_a != kOperationN ? 1 : 0;
  problem.transposed_b = call.transposed_b != kOperationN ? 1 : 0;
  return to_status(launch_gemm(Door::kProcAddress, call.handle->stream, problem));
}

__attribute__((noinline)) Status multiply_and_wipe(const Call& call) {
  const Status status = multiply(call);
  wipe_dead_stack();
  return status;
}

constexpr int kFloat = 0;   // CUDA_R_32F
constexpr int kDouble = 1;  // CUDA_R_64F

}  // namespace

SIMGPU_LIBRARY_API cublasCreate_v2(Handle** handle) {
  *handle = new Handle;
  return kSuccess;
}

SIMGPU_LIBRARY_API cublasDestroy_v2(Handle* handle) {
  delete handle;
  return kSuccess;
}

SIMGPU_LIBRARY_API cublasSetStream_v2(Handle* handle, CUstream stream) {
  if (handle == nullptr) return kNotInitialized;
  handle->stream = stream;
  return kSuccess;
}

SIMGPU_LIBRARY_API cublasSetWorkspace_v2(Handle* handle, void* workspace, size_t bytes) {
  if (handle == nullptr) return kNotInitialized;
  handle->workspace = workspace;
  handle->workspace_bytes = bytes;
  return kSuccess;
}

SIMGPU_LIBRARY_API cublasSetMathMode(Handle* handle, int mode) {
  if (handle == nullptr) return kNotInitialized;
  handle->math_mode = mode;
  return kSuccess;
}

SIMGPU_LIBRARY_API cublasGetMathMode(Handle* handle, int* mode) {
  if (handle == nullptr) return kNotInitialized;
  *mode = handle->math_mode;
  return kSuccess;
}

SIMGPU_LIBRARY_API cublasSetPointerMode_v2(Handle* handle, int mode) {
  if (handle == nullptr) return kNotInitialized;
  handle->pointer_mode = mode;
  return kSuccess;
}

SIMGPU_LIBRARY_API cublasGetPointerMode_v2(Handle* handle, int* mode) {
  if (handle == nullptr) return kNotInitialized;
  *mode = handle->pointer_mode;
  return kSuccess;
}

SIMGPU_LIBRARY_API cublasSgemm_v2(Handle* handle, int transa, int transb, int m, int n, int k,
                                  const float* alpha, const float* a, int lda, const float* b,
                                  int ldb, const float* beta, float* c, int ldc) {
  return multiply_and_wipe({handle, transa, transb, m, n,    k, alpha,  a,   kFloat, lda, 0,
                            b,      kFloat, ldb,    0, beta, c, kFloat, ldc, 0,      1});
}

SIMGPU_LIBRARY_API cublasDgemm_v2(Handle* handle, int transa, int transb, int m, int n, int k,
                                  const double* alpha, const double* a, int lda, const double* b,
                                  int ldb, const double* beta, double* c, int ldc) {
  return multiply_and_wipe({handle, transa,  transb, m, n,    k, alpha,   a,   kDouble, lda, 0,
                            b,      kDouble, ldb,    0, beta, c, kDouble, ldc, 0,       1});
}

SIMGPU_LIBRARY_API cublasSgemmEx(Handle* handle, int transa, int transb, int m, int n, int k,
                                 const float* alpha, const void* a, int type_a, int lda,
                                 const void* b, int type_b, int ldb, const float* beta, void* c,
                                 int type_c, int ldc) {
  return multiply_and_wipe({handle, transa, transb, m, n,    k, alpha,  a,   type_a, lda, 0,
                            b,      type_b, ldb,    0, beta, c, type_c, ldc, 0,      1});
}

SIMGPU_LIBRARY_API cublasGemmEx(Handle* handle, int transa, int transb, int m, int n, int k,
                                const void* alpha, const void* a, int type_a, int lda,
                                const void* b, int type_b, int ldb, const void* beta, void* c,
                                int type_c, int ldc, int compute, int) {
  if (compute == kCompute16F || compute == kCompute16FPedantic) {
    return refuse("cuBLAS with sums in half precision");
  }
  return multiply_and_wipe({handle, transa, transb, m, n,    k, alpha,  a,   type_a, lda, 0,
                            b,      type_b, ldb,    0, beta, c, type_c, ldc, 0,      1});
}

SIMGPU_LIBRARY_API cublasSgemmStridedBatched(Handle* handle, int transa, int transb, int m, int n,
                                             int k, const float* alpha, const float* a, int lda,
                                             int64_t stride_a, const float* b, int ldb,
                                             int64_t stride_b, const float* beta, float* c, int ldc,
                                             int64_t stride_c, int batch) {
  return multiply_and_wipe({handle,   transa, transb, m,        n,   k,        alpha,
                            a,        kFloat, lda,    stride_a, b,   kFloat,   ldb,
                            stride_b, beta,   c,      kFloat,   ldc, stride_c, batch});
}

SIMGPU_LIBRARY_API cublasDgemmStridedBatched(Handle* handle, int transa, int transb, int m, int n,
                                             int k, const double* alpha, const double* a, int lda,
                                             int64_t stride_a, const double* b, int ldb,
                                             int64_t stride_b, const double* beta, double* c,
                                             int ldc, int64_t stride_c, int batch) {
  return multiply_and_wipe({handle,   transa,  transb, m,        n,   k,        alpha,
                            a,        kDouble, lda,    stride_a, b,   kDouble,  ldb,
                            stride_b, beta,    c,      kDouble,  ldc, stride_c, batch});
}

SIMGPU_LIBRARY_API cublasGemmStridedBatchedEx(Handle* handle, int transa, int transb, int m, int n,
                                              int k, const void* alpha, const void* a, int type_a,
                                              int lda, int64_t stride_a, const void* b, int type_b,
                                              int ldb, int64_t stride_b, const void* beta, void* c,
                                              int type_c, int ldc, int64_t stride_c, int batch,
                                              int compute, int) {
  if (compute == kCompute16F || compute == kCompute16FPedantic) {
    return refuse("cuBLAS with sums in half precision");
  }
  return multiply_and_wipe({handle,   transa, transb, m,        n,   k,        alpha,
                            a,        type_a, lda,    stride_a, b,   type_b,   ldb,
                            stride_b, beta,   c,      type_c,   ldc, stride_c, batch});
}

}  // namespace simgpu::torch
