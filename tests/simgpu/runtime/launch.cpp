// SPDX-License-Identifier: Apache-2.0
// Kernel launches: by the two steps of nvcc's <<<>>> (push the configuration, then the generated
// host function pops it and launches), and by the public functions.

#include <cuda_runtime_api.h>

#include <climits>
#include <vector>

#include "tests/simgpu/runtime/call.h"
#include "tests/simgpu/runtime/registry.h"

namespace simgpu::runtime {

namespace {

struct Configuration {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  cudaStream_t stream;
};

// A stack, because a kernel's arguments may be computed by code that launches.
std::vector<Configuration>& configurations() {
  static thread_local std::vector<Configuration> stack;
  return stack;
}

__attribute__((noinline)) void push(dim3 grid, dim3 block, size_t shared_bytes,
                                    cudaStream_t stream) {
  configurations().push_back({grid, block, shared_bytes, stream});
}

CUfunction as_function(CUkernel kernel) {
  return reinterpret_cast<CUfunction>(kernel);
}

template <Flavor flavor>
cudaError_t launch_kernel(CUkernel kernel, dim3 grid, dim3 block, void** arguments,
                          size_t shared_bytes, cudaStream_t stream) {
  return with_context([&](const Driver& api) {
    if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
    if (shared_bytes > UINT_MAX) return cudaErrorInvalidValue;
    return call(api.cuLaunchKernel[flavor], as_function(kernel), grid.x, grid.y, grid.z, block.x,
                block.y, block.z, static_cast<unsigned>(shared_bytes), stream, arguments, nullptr);
  });
}

template <Flavor flavor>
cudaError_t launch_function(const void* function, dim3 grid, dim3 block, void** arguments,
                            size_t shared_bytes, cudaStream_t stream) {
  CUkernel kernel = nullptr;
  const cudaError_t status =
      with_context([&](const Driver&) { return find_kernel(function, &kernel); });
  if (status != cudaSuccess) return status;
  return launch_kernel<flavor>(kernel, grid, block, arguments, shared_bytes, stream);
}

template <Flavor flavor>
cudaError_t launch_cooperative(const void* function, dim3 grid, dim3 block, void** arguments,
                               size_t shared_bytes, cudaStream_t stream) {
  return with_context([&](const Driver& api) {
    CUkernel kernel = nullptr;
    const cudaError_t status = find_kernel(function, &kernel);
    if (status != cudaSuccess) return status;
    if (shared_bytes > UINT_MAX) return cudaErrorInvalidValue;
    return call(api.cuLaunchCooperativeKernel[flavor], as_function(kernel), grid.x, grid.y, grid.z,
                block.x, block.y, block.z, static_cast<unsigned>(shared_bytes), stream, arguments);
  });
}

template <Flavor flavor>
cudaError_t launch_extended(const cudaLaunchConfig_t* configuration, const void* function,
                            void** arguments) {
  static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));
  return with_context([&](const Driver& api) {
    if (configuration == nullptr) return cudaErrorInvalidValue;
    CUkernel kernel = nullptr;
    const cudaError_t status = find_kernel(function, &kernel);
    if (status != cudaSuccess) return status;
    if (configuration->dynamicSmemBytes > UINT_MAX) return cudaErrorInvalidValue;
    CUlaunchConfig config{};
    config.gridDimX = configuration->gridDim.x;
    config.gridDimY = configuration->gridDim.y;
    config.gridDimZ = configuration->gridDim.z;
    config.blockDimX = configuration->blockDim.x;
    config.blockDimY = configuration->blockDim.y;
    config.blockDimZ = configuration->blockDim.z;
    config.sharedMemBytes = static_cast<unsigned>(configuration->dynamicSmemBytes);
    config.hStream = configuration->stream;
    // The two attribute types have one layout and one numbering.
    config.attrs = reinterpret_cast<CUlaunchAttribute*>(configuration->attrs);
    config.numAttrs = configuration->numAttrs;
    return call(api.cuLaunchKernelEx[flavor], &config, as_function(kernel), arguments, nullptr);
  });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) unsigned __cudaPushCallConfiguration(
    dim3 grid, dim3 block, size_t shared_bytes, CUstream_st* stream) {
  push(grid, block, shared_bytes, stream);
  wipe_dead_stack();
  return 0;
}

RUNTIME_API __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                       void* stream) {
  if (configurations().empty()) return remember(cudaErrorMissingConfiguration);
  const Configuration top = configurations().back();
  configurations().pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

RUNTIME_WIPED(__cudaGetKernel, (cudaKernel_t * kernel, const void* function), (kernel, function)) {
  return with_context([&](const Driver&) { return find_kernel(function, kernel); });
}

RUNTIME_PAIR(__cudaLaunchKernel, _ptsz,
             (cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
              cudaStream_t stream),
             launch_kernel, (kernel, grid, block, arguments, shared_bytes, stream))

RUNTIME_PAIR(cudaLaunchKernel, _ptsz,
             (const void* function, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
              cudaStream_t stream),
             launch_function, (function, grid, block, arguments, shared_bytes, stream))

RUNTIME_PAIR(cudaLaunchCooperativeKernel, _ptsz,
             (const void* function, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
              cudaStream_t stream),
             launch_cooperative, (function, grid, block, arguments, shared_bytes, stream))

RUNTIME_PAIR(cudaLaunchKernelExC, _ptsz,
             (const cudaLaunchConfig_t* configuration, const void* function, void** arguments),
             launch_extended, (configuration, function, arguments))

}  // namespace simgpu::runtime
