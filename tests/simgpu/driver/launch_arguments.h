// SPDX-License-Identifier: Apache-2.0
#pragma once
// What launches and kernel nodes check and copy. Plain functions.

#include <cuda.h>

#include <cstddef>
#include <vector>

#include "tests/simgpu/module/module.h"

namespace simgpu {

bool launch_shape_is_valid(const SimgpuLaunch& launch);
// The kernel's parameter buffer, from either way of passing arguments.
CUresult take_launch_arguments(const Kernel& kernel, void** parameters, void** extra,
                               std::vector<std::byte>* buffer);

}  // namespace simgpu
