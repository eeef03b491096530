// SPDX-License-Identifier: Apache-2.0
// The event is on the right stream. The mistake: it was recorded before the work that it should
// stand for.

#include "tests/simgpu/clients/client.h"

int simgpu::client::run(bool right) {
  const CUstream writer = make_stream();
  const CUstream reader = make_stream();
  const CUevent written = make_event();
  CUdeviceptr data = 0;
  CUdeviceptr result = 0;
  MUST(cuMemAlloc(&data, kBytes));
  MUST(cuMemAlloc(&result, kBytes));
  if (!right) MUST(cuEventRecord(written, writer));
  launch_fill(writer, data, 1);
  if (right) MUST(cuEventRecord(written, writer));
  MUST(cuStreamWaitEvent(reader, written, 0));
  launch_copy(reader, result, data);
  MUST(cuCtxSynchronize());
  return 0;
}
