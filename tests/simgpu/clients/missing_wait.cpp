// SPDX-License-Identifier: Apache-2.0
// A stream reads what another one writes. The mistake: it does not wait for it.

#include "tests/simgpu/clients/client.h"

int simgpu::client::run(bool right) {
  const CUstream writer = make_stream();
  const CUstream reader = make_stream();
  CUdeviceptr data = 0;
  CUdeviceptr result = 0;
  MUST(cuMemAlloc(&data, kBytes));
  MUST(cuMemAlloc(&result, kBytes));
  launch_fill(writer, data, 1);
  if (right) join(reader, writer);
  launch_copy(reader, result, data);
  MUST(cuCtxSynchronize());
  MUST(cuMemFree(data));
  MUST(cuMemFree(result));
  return 0;
}
