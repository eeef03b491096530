// SPDX-License-Identifier: Apache-2.0
#pragma once
// Devices by ordinal. All need open_driver() to have succeeded.

#include <cuda.h>
#include <driver_types.h>

namespace simgpu::runtime {

// cudaErrorInvalidDevice if there is no such device.
cudaError_t check_device(int device);

// Retained at first use and kept.
cudaError_t primary_context(int device, CUcontext* context);

// The device of the thread's current context, or the one it would get.
cudaError_t current_device(int* device);

}  // namespace simgpu::runtime
