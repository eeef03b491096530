// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels' CUDA side (kernels/lanes_cuda.h) compiled for the host: each lane is a thread,
// shuffles meet at a barrier. It shows that the CUDA source computes what the twins do, without a
// GPU; not that nvcc compiles it so.

#include <string>

#include "tests/simgpu/twin.h"

namespace gpt {

// Runs the whole grid. arguments[i] points to parameter i.
void run_on_threads(const std::string& name, const SimgpuLaunch& launch, void* const* arguments);

}  // namespace gpt
