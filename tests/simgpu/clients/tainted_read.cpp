// SPDX-License-Identifier: Apache-2.0
// A kernel adds to a buffer. The mistake: nothing has ever been written there.

#include "tests/simgpu/clients/client.h"

int simgpu::client::run(bool right) {
  CUdeviceptr data = 0;
  MUST(cuMemAlloc(&data, kBytes));
  if (right) MUST(cuMemsetD8(data, 0, kBytes));
  launch_increment(nullptr, data);
  MUST(cuCtxSynchronize());
  return 0;
}
