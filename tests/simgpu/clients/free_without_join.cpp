// SPDX-License-Identifier: Apache-2.0
// A stream-ordered allocation is used on one stream and freed on another. The mistake: the second
// does not wait for the first, so the memory may have a new owner while the first still uses it.

#include "tests/simgpu/clients/client.h"

int simgpu::client::run(bool right) {
  const CUstream user = make_stream();
  const CUstream other = make_stream();
  CUdeviceptr data = 0;
  MUST(cuMemAllocAsync(&data, kBytes, user));
  launch_fill(user, data, 1);
  if (right) join(other, user);
  MUST(cuMemFreeAsync(data, other));
  const CUresult result = cuCtxSynchronize();
  if (!right && result != CUDA_SUCCESS) return refused(result, CUDA_ERROR_ILLEGAL_ADDRESS);
  MUST(result);
  return 0;
}
