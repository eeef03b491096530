// SPDX-License-Identifier: Apache-2.0
// A handle is released while mapped, which is allowed: the memory lives until it is unmapped. The
// mistake: it is released again.

#include "tests/simgpu/clients/client.h"

int simgpu::client::run(bool right) {
  const CUdeviceptr address = reserve(granule());
  const CUmemGenericAllocationHandle handle = create_granule();
  map_granule(address, handle);
  set_access(address);
  MUST(cuMemRelease(handle));
  launch_fill(nullptr, address, 1);
  MUST(cuCtxSynchronize());
  if (!right) return refused(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
  MUST(cuMemUnmap(address, granule()));
  MUST(cuMemAddressFree(address, granule()));
  return 0;
}
