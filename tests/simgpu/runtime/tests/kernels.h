// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels of the tests as plain functions: nvcc compiles their launches (`<<<>>>`), the tests
// stay plain C++.

#include <cuda_runtime_api.h>

void launch_saxpy(float a, const float* x, float* y, int n, cudaStream_t stream);
void launch_fill(int* data, int value, int n, cudaStream_t stream);
void launch_with_block(unsigned threads);  // to be refused when `threads` is too large
void launch_sum_of_struct(int* out, cudaStream_t stream);

// For functions that take a kernel as an address.
const void* saxpy_function();
const void* fill_function();
