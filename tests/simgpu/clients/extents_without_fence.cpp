// SPDX-License-Identifier: Apache-2.0
// One piece of physical memory passes from one address to another while work on the first is
// queued. The mistake: the stream that uses the second address does not wait for the one that used
// the first.

#include "tests/simgpu/clients/client.h"

int simgpu::client::run(bool right) {
  const CUstream first = make_stream();
  const CUstream second = make_stream();
  const CUdeviceptr old_address = reserve(granule());
  const CUdeviceptr new_address = reserve(granule());
  const CUmemGenericAllocationHandle handle = create_granule();
  map_granule(old_address, handle);
  set_access(old_address);
  launch_fill(first, old_address, 1);
  map_granule(new_address, handle);
  set_access(new_address);
  if (right) join(second, first);
  launch_fill(second, new_address, 2);
  MUST(cuCtxSynchronize());
  MUST(cuMemUnmap(old_address, granule()));
  MUST(cuMemUnmap(new_address, granule()));
  MUST(cuMemRelease(handle));
  return 0;
}
