// SPDX-License-Identifier: Apache-2.0
// A pinned slot is filled by a copy out, read by a copy in on another stream, then filled again.
// The mistake: the second copy out does not wait for the copy in that still reads the slot.

#include "tests/simgpu/clients/client.h"

int simgpu::client::run(bool right) {
  const CUstream out = make_stream();
  const CUstream in = make_stream();
  CUdeviceptr first = 0;
  CUdeviceptr second = 0;
  CUdeviceptr target = 0;
  void* slot = nullptr;
  MUST(cuMemAlloc(&first, kBytes));
  MUST(cuMemAlloc(&second, kBytes));
  MUST(cuMemAlloc(&target, kBytes));
  MUST(cuMemHostAlloc(&slot, kBytes, 0));
  launch_fill(out, first, 1);
  launch_fill(out, second, 2);
  MUST(cuMemcpyDtoHAsync(slot, first, kBytes, out));
  join(in, out);
  MUST(cuMemcpyHtoDAsync(target, slot, kBytes, in));
  if (right) join(out, in);
  MUST(cuMemcpyDtoHAsync(slot, second, kBytes, out));
  MUST(cuCtxSynchronize());
  return 0;
}
