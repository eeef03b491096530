// SPDX-License-Identifier: Apache-2.0
// A mapping is taken away. The mistake: a kernel that uses it may still be queued, and unmapping
// does not wait.

#include "tests/simgpu/clients/client.h"

int simgpu::client::run(bool right) {
  const CUstream stream = make_stream();
  const CUdeviceptr address = reserve(granule());
  const CUmemGenericAllocationHandle handle = create_granule();
  map_granule(address, handle);
  set_access(address);
  launch_fill(stream, address, 1);
  if (right) MUST(cuStreamSynchronize(stream));
  MUST(cuMemUnmap(address, granule()));
  MUST(cuMemRelease(handle));
  const CUresult result = cuCtxSynchronize();
  if (!right && result != CUDA_SUCCESS) return refused(result, CUDA_ERROR_ILLEGAL_ADDRESS);
  MUST(result);
  if (right) MUST(cuMemAddressFree(address, granule()));
  return 0;
}
