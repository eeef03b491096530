// SPDX-License-Identifier: Apache-2.0
// Stands for PyTorch's libc10_cuda.so, of which liboffload looks only at the name in the link map.

extern "C" __attribute__((visibility("default"))) int client_c10_cuda();

int client_c10_cuda() {
  return 1;
}
