// SPDX-License-Identifier: Apache-2.0
// A stream-ordered allocation is used on another stream. The mistake: that stream does not wait for
// the allocation.

#include "tests/simgpu/clients/client.h"

int simgpu::client::run(bool right) {
  const CUstream owner = make_stream();
  const CUstream user = make_stream();
  CUdeviceptr data = 0;
  MUST(cuMemAllocAsync(&data, kBytes, owner));
  if (right) join(user, owner);
  launch_fill(user, data, 1);
  const CUresult result = cuCtxSynchronize();
  if (!right && result != CUDA_SUCCESS) return refused(result, CUDA_ERROR_ILLEGAL_ADDRESS);
  MUST(result);
  return 0;
}
