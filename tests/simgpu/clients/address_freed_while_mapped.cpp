// SPDX-License-Identifier: Apache-2.0
// A range of addresses is given back. The mistake: something is still mapped there.

#include "tests/simgpu/clients/client.h"

int simgpu::client::run(bool right) {
  const CUdeviceptr address = reserve(2 * granule());
  const CUmemGenericAllocationHandle handle = create_granule();
  map_granule(address, handle);
  set_access(address);
  if (right) MUST(cuMemUnmap(address, granule()));
  const CUresult result = cuMemAddressFree(address, 2 * granule());
  if (!right) return refused(result, CUDA_ERROR_INVALID_VALUE);
  MUST(result);
  MUST(cuMemRelease(handle));
  return 0;
}
