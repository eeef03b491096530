// SPDX-License-Identifier: Apache-2.0
// A kernel is given memory that has been freed. Large enough to have pages of its own, so that they
// are gone.

#include "tests/simgpu/clients/client.h"

int simgpu::client::run(bool right) {
  const CUstream stream = make_stream();
  CUdeviceptr data = 0;
  MUST(cuMemAlloc(&data, size_t{32} << 20));
  if (!right) MUST(cuMemFree(data));
  launch_fill(stream, data, 1);
  const CUresult result = cuStreamSynchronize(stream);
  if (!right) return refused(result, CUDA_ERROR_ILLEGAL_ADDRESS);
  MUST(result);
  MUST(cuMemFree(data));
  return 0;
}
