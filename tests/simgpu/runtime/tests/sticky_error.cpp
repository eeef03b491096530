// SPDX-License-Identifier: Apache-2.0
// A kernel that touches no one's memory: the error comes with the next synchronising call and stays
// for good.

#include <cuda_runtime_api.h>

#include <cstdio>

#include "tests/simgpu/runtime/tests/kernels.h"

int main() {
  void* pointer = nullptr;
  if (cudaMalloc(&pointer, 4096) != cudaSuccess) return 1;
  launch_fill(static_cast<int*>(pointer) + (1 << 30), 0, 1, nullptr);
  const cudaError_t launched = cudaGetLastError();
  const cudaError_t synchronized = cudaDeviceSynchronize();
  const cudaError_t first = cudaGetLastError();
  const cudaError_t second = cudaGetLastError();
  const cudaError_t later = cudaMalloc(&pointer, 16);
  std::printf("%d %d %d %d %d\n", launched, synchronized, first, second, later);
  const bool right = launched == cudaSuccess && synchronized == cudaErrorIllegalAddress &&
                     first == cudaErrorIllegalAddress && second == cudaErrorIllegalAddress &&
                     later == cudaErrorIllegalAddress;
  return right ? 0 : 1;
}
