// SPDX-License-Identifier: Apache-2.0
#pragma once
// The numbers of cuBLAS's public headers (cublas_api.h, cublasLt.h) that the stand-ins need; the
// headers are in a package of their own, which building these does not ask for.

#include "tests/simgpu/torch/gemm_launch.h"

#define SIMGPU_LIBRARY_API extern "C" __attribute__((visibility("default"))) int

namespace simgpu::torch {

enum Status : int {
  kSuccess = 0,
  kNotInitialized = 1,
  kInvalidValue = 7,
  kExecutionFailed = 13,
  kNotSupported = 15,
};

inline constexpr int kOperationN = 0;
inline constexpr int kPointerModeHost = 0;
inline constexpr int kCompute16F = 64;
inline constexpr int kCompute16FPedantic = 65;

inline Status to_status(CUresult result) {
  return result == CUDA_SUCCESS                 ? kSuccess
         : result == CUDA_ERROR_NOT_INITIALIZED ? kNotInitialized
                                                : kExecutionFailed;
}

}  // namespace simgpu::torch
