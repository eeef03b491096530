// SPDX-License-Identifier: Apache-2.0
// Kernel launches.
#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/launch_arguments.h"
#include "tests/simgpu/driver/objects.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/exec/capture.h"
#include "tests/simgpu/exec/costs.h"
#include "tests/simgpu/exec/engine.h"
#include "tests/simgpu/exec/kernel_op.h"
#include "tests/simgpu/memory/machine.h"

using simgpu::Call;
using simgpu::DefaultStream;
using simgpu::engine;
using simgpu::Needs;

namespace {

// Code goes to the device at the first launch from its module (CUDA C++ Programming Guide, "Lazy
// Loading"): that takes memory, and time, under the lock that every call needs.
CUresult load_code(simgpu::Code& code, int device) {
  if (code.launched) return CUDA_SUCCESS;
  if (const size_t bytes = simgpu::options().code_bytes; bytes != 0) {
    const size_t unit = simgpu::options().granularity;
    const size_t whole = (bytes + unit - 1) / unit * unit;
    const uint64_t offset = simgpu::device_memory(device).allocate(whole);
    if (offset == simgpu::PhysicalMemory::kNone) return CUDA_ERROR_OUT_OF_MEMORY;
    code.code_offset = offset;
    code.code_bytes = whole;
    code.code_device = device;
  }
  code.launched = true;
  engine().spend_keeping_driver(simgpu::kFirstLaunchNs);
  return CUDA_SUCCESS;
}

CUresult launch(Call& call, CUfunction handle, const SimgpuLaunch& shape, CUstream stream_handle,
                DefaultStream preset, void** parameters, void** extra) {
  if (call.error != CUDA_SUCCESS) return call.error;
  const simgpu::Function* function = simgpu::function_handles().find(handle);
  simgpu::Stream* stream = call.stream(stream_handle, preset);
  if (stream == nullptr) return call.no_stream(stream_handle);
  if (function == nullptr || &stream->context->owner() != &call.context->owner()) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (CUresult error = Call::stream_error(*stream); error != CUDA_SUCCESS) return error;
  if (!simgpu::launch_shape_is_valid(shape)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::byte> buffer;
  if (CUresult error = simgpu::take_launch_arguments(*function->kernel, parameters, extra, &buffer);
      error != CUDA_SUCCESS) {
    return error;
  }
  simgpu::Names names = simgpu::names_in(*function->kernel, buffer);
  if (stream->capture != nullptr) {
    return simgpu::captures::add(
        *stream, simgpu::KernelNode{handle, function->code->image, function->kernel, shape,
                                    std::move(buffer), reinterpret_cast<CUcontext>(stream->context),
                                    std::move(names)});
  }
  if (CUresult error = load_code(*function->code, stream->device); error != CUDA_SUCCESS) {
    return error;
  }
  engine().submit(call.lock, *stream,
                  std::make_unique<simgpu::KernelOp>(function->code->image, function->kernel, shape,
                                                     std::move(buffer), std::move(names)));
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
