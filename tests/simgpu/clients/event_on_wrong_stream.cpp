// SPDX-License-Identifier: Apache-2.0
// A stream reads what another one writes, and waits for an event. The mistake: the event was
// recorded on a third.

#include "tests/simgpu/clients/client.h"

int simgpu::client::run(bool right) {
  const CUstream writer = make_stream();
  const CUstream reader = make_stream();
  const CUstream bystander = make_stream();
  const CUevent written = make_event();
  CUdeviceptr data = 0;
  CUdeviceptr result = 0;
  MUST(cuMemAlloc(&data, kBytes));
  MUST(cuMemAlloc(&result, kBytes));
  launch_fill(writer, data, 1);
  MUST(cuEventRecord(written, right ? writer : bystander));
  MUST(cuStreamWaitEvent(reader, written, 0));
  launch_copy(reader, result, data);
  MUST(cuCtxSynchronize());
  return 0;
}
