// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/runtime/tests/kernels.h"
#include "tests/simgpu/runtime/tests/saxpy.h"

extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) saxpy_element(a, x, y, i);
}

__global__ void fill(int* data, int value, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = value + i;
}

struct Numbers {
  int values[1000];
};

__global__ void sum_of_struct(Numbers numbers, int* out) {
  int sum = 0;
  for (int i = 0; i < 1000; ++i) sum += numbers.values[i];
  *out = sum;
}

void launch_saxpy(float a, const float* x, float* y, int n, cudaStream_t stream) {
  saxpy<<<(n + 127) / 128, 128, 0, stream>>>(a, x, y, n);
}

void launch_fill(int* data, int value, int n, cudaStream_t stream) {
  fill<<<(n + 127) / 128, 128, 0, stream>>>(data, value, n);
}

void launch_with_block(unsigned threads) {
  fill<<<1, threads>>>(nullptr, 0, 0);
}

void launch_sum_of_struct(int* out, cudaStream_t stream) {
  Numbers numbers;
  for (int i = 0; i < 1000; ++i) numbers.values[i] = i;
  sum_of_struct<<<1, 1, 0, stream>>>(numbers, out);
}

const void* saxpy_function() {
  return reinterpret_cast<const void*>(saxpy);
}
const void* fill_function() {
  return reinterpret_cast<const void*>(fill);
}
