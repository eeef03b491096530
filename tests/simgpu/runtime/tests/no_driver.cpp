// SPDX-License-Identifier: Apache-2.0
// Where there is no libcuda at all.

#include <cuda_runtime_api.h>

#include <cstdio>

int main() {
  int count = -1;
  int version = -1;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  const cudaError_t versioned = cudaDriverGetVersion(&version);
  std::printf("%s %d %s %d\n", cudaGetErrorName(counted), count, cudaGetErrorName(versioned),
              version);
  return counted == cudaErrorInsufficientDriver && count == 0 && versioned == cudaSuccess &&
                 version == 0
             ? 0
             : 1;
}
