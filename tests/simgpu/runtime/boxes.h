// SPDX-License-Identifier: Apache-2.0
#pragma once
// The runtime's description of a copy in the driver's terms.

#include <cuda.h>
#include <driver_types.h>

namespace simgpu::runtime {

// cudaErrorNotSupported: it names an array.
cudaError_t describe_box(const cudaMemcpy3DParms* from, CUDA_MEMCPY3D* copy);

}  // namespace simgpu::runtime
