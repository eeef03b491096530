// SPDX-License-Identifier: Apache-2.0
// An address is unmapped and mapped again. The mistake: access is thought to belong to the address,
// but it went with the mapping.

#include "tests/simgpu/clients/client.h"

int simgpu::client::run(bool right) {
  const CUstream stream = make_stream();
  const CUdeviceptr address = reserve(granule());
  const CUmemGenericAllocationHandle handle = create_granule();
  map_granule(address, handle);
  set_access(address);
  launch_fill(stream, address, 1);
  MUST(cuStreamSynchronize(stream));
  MUST(cuMemUnmap(address, granule()));
  map_granule(address, handle);
  if (right) set_access(address);
  launch_increment(stream, address);
  const CUresult result = cuStreamSynchronize(stream);
  if (!right) return refused(result, CUDA_ERROR_ILLEGAL_ADDRESS);
  MUST(result);
  return 0;
}
