// SPDX-License-Identifier: Apache-2.0
// Kernel launches.
#include <cstring>

#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/objects.h"
#include "tests/simgpu/exec/engine.h"
#include "tests/simgpu/exec/kernel_op.h"

using simgpu::Call;
using simgpu::DefaultStream;
using simgpu::engine;
using simgpu::Needs;

namespace {

constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kMaxGridYZ = 65535;
constexpr unsigned kMaxGridX = 0x7fffffff;
constexpr unsigned kMaxSharedBytes = 166912;

bool shape_is_valid(const SimgpuLaunch& launch) {
  const unsigned* grid = launch.grid;
  const unsigned* block = launch.block;
  for (int i = 0; i < 3; ++i) {
    if (grid[i] == 0 || block[i] == 0) return false;
  }
  if (grid[0] > kMaxGridX || grid[1] > kMaxGridYZ || grid[2] > kMaxGridYZ) return false;
  if (block[0] > kMaxThreads || block[1] > kMaxThreads || block[2] > 64) return false;
  return uint64_t{block[0]} * block[1] * block[2] <= kMaxThreads &&
         launch.shared_bytes <= kMaxSharedBytes;
}

// The parameter buffer, from either way of passing arguments.
CUresult take_arguments(const simgpu::Kernel& kernel, void** parameters, void** extra,
                        std::vector<std::byte>* buffer) {
  size_t needed = 0;
  for (const auto& parameter : kernel.parameters()) {
    needed = std::max(needed, parameter.offset + parameter.size);
  }
  buffer->resize(needed);
  if (parameters != nullptr) {
    if (extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < kernel.parameters().size(); ++i) {
      const auto& parameter = kernel.parameters()[i];
      if (parameters[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      std::memcpy(buffer->data() + parameter.offset, parameters[i], parameter.size);
    }
    return CUDA_SUCCESS;
  }
  if (extra == nullptr) return needed == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  const void* data = nullptr;
  const size_t* size = nullptr;
  for (void** entry = extra; *entry != CU_LAUNCH_PARAM_END; entry += 2) {
    if (entry[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      data = entry[1];
    } else if (entry[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size = static_cast<const size_t*>(entry[1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  // Tail padding may be left out.
  if (data == nullptr || size == nullptr || *size + 16 < needed) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(buffer->data(), data, std::min(*size, needed));
  return CUDA_SUCCESS;
}

CUresult launch(Call& call, CUfunction handle, const SimgpuLaunch& shape, CUstream stream_handle,
                DefaultStream preset, void** parameters, void** extra) {
  if (call.error != CUDA_SUCCESS) return call.error;
  const simgpu::Function* function = simgpu::function_handles().find(handle);
  simgpu::Stream* stream = call.stream(stream_handle, preset);
  if (function == nullptr || stream == nullptr || stream->context != call.context) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (!shape_is_valid(shape)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::byte> buffer;
  if (CUresult error = take_arguments(*function->kernel, parameters, extra, &buffer);
      error != CUDA_SUCCESS) {
    return error;
  }
  engine().submit(call.lock, *stream,
                  std::make_unique<simgpu::KernelOp>(function->code->image, function->kernel, shape,
                                                     std::move(buffer)));
  return CUDA_SUCCESS;
}

template <DefaultStream preset>
CUresult launch_kernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                       CUstream stream, void** parameters, void** extra) {
  Call call(Needs::kContext);
  const SimgpuLaunch shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, 0, 0, 0};
  return launch(call, function, shape, stream, preset, parameters, extra);
}

template <DefaultStream preset>
CUresult launch_cooperative(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                            CUstream stream, void** parameters) {
  return launch_kernel<preset>(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                               stream, parameters, nullptr);
}

template <DefaultStream preset>
CUresult launch_ex(const CUlaunchConfig* config, CUfunction function, void** parameters,
                   void** extra) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const SimgpuLaunch shape{{config->gridDimX, config->gridDimY, config->gridDimZ},
                           {config->blockDimX, config->blockDimY, config->blockDimZ},
                           config->sharedMemBytes,
                           0,
                           0,
                           0};
  return launch(call, function, shape, config->hStream, preset, parameters, extra);
}

}  // namespace

SIMGPU_STREAM_API(cuLaunchKernel, _ptsz, launch_kernel,
                  (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                   unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
                   void** parameters, void** extra),
                  (f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra))
SIMGPU_STREAM_API(cuLaunchCooperativeKernel, _ptsz, launch_cooperative,
                  (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                   unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
                   void** parameters),
                  (f, gx, gy, gz, bx, by, bz, shared, stream, parameters))
SIMGPU_STREAM_API(cuLaunchKernelEx, _ptsz, launch_ex,
                  (const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra),
                  (config, f, parameters, extra))
