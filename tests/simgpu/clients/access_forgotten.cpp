// SPDX-License-Identifier: Apache-2.0
// A new mapping grants no access. The mistake: cuMemSetAccess is missing.

#include "tests/simgpu/clients/client.h"

int simgpu::client::run(bool right) {
  const CUstream stream = make_stream();
  const CUdeviceptr address = reserve(granule());
  map_granule(address, create_granule());
  if (right) set_access(address);
  launch_fill(stream, address, 1);
  const CUresult result = cuStreamSynchronize(stream);
  if (!right) return refused(result, CUDA_ERROR_ILLEGAL_ADDRESS);
  MUST(result);
  return 0;
}
