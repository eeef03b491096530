// SPDX-License-Identifier: Apache-2.0
// Memory is freed. The mistake: twice.

#include "tests/simgpu/clients/client.h"

int simgpu::client::run(bool right) {
  CUdeviceptr data = 0;
  MUST(cuMemAlloc(&data, kBytes));
  MUST(cuMemFree(data));
  return right ? 0 : refused(cuMemFree(data), CUDA_ERROR_INVALID_VALUE);
}
