// SPDX-License-Identifier: Apache-2.0
// The host wants a result. The mistake: it reads it through the device's address. No kernel runs at
// that time.

#include "tests/simgpu/clients/client.h"

int simgpu::client::run(bool right) {
  CUdeviceptr data = 0;
  unsigned word = 0;
  MUST(cuMemAlloc(&data, kBytes));
  launch_fill(nullptr, data, 7);
  MUST(cuCtxSynchronize());
  if (right) {
    MUST(cuMemcpyDtoH(&word, data, sizeof(word)));
  } else {
    word = *reinterpret_cast<volatile unsigned*>(data);
  }
  return word == 7 ? 0 : 1;
}
