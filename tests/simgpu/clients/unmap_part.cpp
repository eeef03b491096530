// SPDX-License-Identifier: Apache-2.0
// A mapping of two granules is taken away. The mistake: only its first half, which cannot be.

#include "tests/simgpu/clients/client.h"

int simgpu::client::run(bool right) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle handle = 0;
  MUST(cuMemCreate(&handle, 2 * granule(), &properties, 0));
  const CUdeviceptr address = reserve(2 * granule());
  MUST(cuMemMap(address, 2 * granule(), 0, handle, 0));
  const CUresult result = cuMemUnmap(address, right ? 2 * granule() : granule());
  if (!right) return refused(result, CUDA_ERROR_INVALID_VALUE);
  MUST(result);
  return 0;
}
