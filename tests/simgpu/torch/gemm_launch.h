// SPDX-License-Identifier: Apache-2.0
#pragma once
// Launches the kernel of a matrix product through the driver.

#include <cuda.h>

#include "tests/simgpu/torch/driver.h"
#include "tests/simgpu/torch/gemm_problem.h"

namespace simgpu::torch {

// Enqueues `problem` on `stream` of the current context. Thread-safe.
CUresult launch_gemm(Door door, CUstream stream, const GemmProblem& problem);

// CUDA_R_* of library_types.h. False: not one of those modelled.
bool to_gemm_type(int cuda_type, GemmType* type);

}  // namespace simgpu::torch
