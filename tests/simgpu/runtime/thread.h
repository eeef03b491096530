// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the runtime knows per host thread: the device asked for and the last error.

#include <driver_types.h>

namespace simgpu::runtime {

struct ThreadState {
  int device = 0;
  unsigned resets_seen = 0;
  cudaError_t last_error = cudaSuccess;
};

ThreadState& thread_state();

// Sets the thread's last error unless `status` is success; returns `status`.
cudaError_t remember(cudaError_t status);

// After one of these the context is lost: cudaGetLastError() keeps returning it.
bool is_sticky(cudaError_t status);

}  // namespace simgpu::runtime
