// SPDX-License-Identifier: Apache-2.0
// A buffer is copied out and back in and then read. The mistake: a kernel on another stream writes
// it while it is copied out, so what comes back is neither the old nor the new content. Nothing but
// the copies touches the slot.

#include "tests/simgpu/clients/client.h"

int simgpu::client::run(bool right) {
  const CUstream compute = make_stream();
  const CUstream copies = make_stream();
  CUdeviceptr data = 0;
  void* slot = nullptr;
  MUST(cuMemAlloc(&data, kBytes));
  MUST(cuMemHostAlloc(&slot, kBytes, 0));
  launch_fill(compute, data, 1);
  join(copies, compute);
  if (right) launch_increment(compute, data);
  if (right) join(copies, compute);
  MUST(cuMemcpyDtoHAsync(slot, data, kBytes, copies));
  if (!right) launch_increment(compute, data);
  join(copies, compute);
  MUST(cuMemcpyHtoDAsync(data, slot, kBytes, copies));
  join(compute, copies);
  launch_increment(compute, data);
  MUST(cuCtxSynchronize());
  return 0;
}
