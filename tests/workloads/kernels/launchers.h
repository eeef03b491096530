// SPDX-License-Identifier: Apache-2.0
#pragma once
// The host's way to each kernel: launch_<name>(groups, stream, the kernel's own parameters). Made
// from kernels.def; defined in device.cu, where nvcc compiles the launch as it compiles any
// `<<<>>>`. Errors are left for cudaGetLastError.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace gpt {

// Extents of the grid of groups (dialect.h); x is rounded up to whole blocks.
struct Groups {
  int64_t x = 1;
  int64_t y = 1;
  int64_t z = 1;
};

template <typename Signature>
struct LauncherOf;
template <typename... Parameters>
struct LauncherOf<void(Parameters...)> {
  using Type = void (*)(Groups, cudaStream_t, Parameters...);
};

#define GPT_KERNEL(name, parameters, access, flops) \
  extern const LauncherOf<void parameters>::Type launch_##name;
#include "tests/workloads/kernels/kernels.def"
#undef GPT_KERNEL

}  // namespace gpt
