// SPDX-License-Identifier: Apache-2.0
// The kernels as nvcc compiles them, and their launchers.

#include "tests/workloads/kernels/all.cuh"
#include "tests/workloads/kernels/launchers.h"

namespace gpt {
namespace {

template <auto kernel>
struct Launcher;
template <typename... Parameters, void (*kernel)(Parameters...)>
struct Launcher<kernel> {
  static void run(Groups groups, cudaStream_t stream, Parameters... parameters) {
    const dim3 grid(unsigned((groups.x + kGroupsPerBlock - 1) / kGroupsPerBlock),
                    unsigned(groups.y), unsigned(groups.z));
    kernel<<<grid, dim3(kLanes, kGroupsPerBlock), 0, stream>>>(parameters...);
  }
};

}  // namespace

#define GPT_KERNEL(name, parameters, access, flops) \
  const LauncherOf<void parameters>::Type launch_##name = &Launcher<&::name>::run;
#include "tests/workloads/kernels/kernels.def"
#undef GPT_KERNEL

}  // namespace gpt
