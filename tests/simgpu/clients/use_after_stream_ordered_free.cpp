// SPDX-License-Identifier: Apache-2.0
// A kernel follows the stream-ordered free of what it uses, on the same stream. The mistake is that
// order.

#include "tests/simgpu/clients/client.h"

int simgpu::client::run(bool right) {
  const CUstream stream = make_stream();
  CUdeviceptr data = 0;
  MUST(cuMemAllocAsync(&data, size_t{32} << 20, stream));
  if (!right) MUST(cuMemFreeAsync(data, stream));
  launch_fill(stream, data, 1);
  if (right) MUST(cuMemFreeAsync(data, stream));
  const CUresult result = cuStreamSynchronize(stream);
  if (!right) return refused(result, CUDA_ERROR_ILLEGAL_ADDRESS);
  MUST(result);
  return 0;
}
