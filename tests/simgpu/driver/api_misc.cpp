// SPDX-License-Identifier: Apache-2.0
// Small entries that need no file of their own: profiler control, and the two that no header knows.
#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/exec/engine.h"
#include "tests/simgpu/exec/touch_op.h"
#include "tests/simgpu/memory/address_space.h"

using simgpu::Call;
using simgpu::engine;
using simgpu::Needs;

extern "C" {
CUresult cuProfilerStart();
CUresult cuProfilerStop();
// Not in any header: for tests of what a client does about entries that it does not know.
CUresult cuSimgpuUnknownA(CUdeviceptr address, size_t bytes, CUstream stream);
CUresult cuSimgpuUnknownB(CUdeviceptr address, size_t bytes);
}

namespace {

CUresult touch(Call& call, CUdeviceptr address, size_t bytes, CUstream handle, bool wait) {
  if (call.error != CUDA_SUCCESS) return call.error;
  simgpu::Stream* stream = call.stream(handle, simgpu::DefaultStream::kLegacy);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const uint64_t number =
      engine().submit(call.lock, *stream, std::make_unique<simgpu::TouchOp>(address, bytes));
  if (!wait) return CUDA_SUCCESS;
  engine().synchronize(call.lock, {{stream, number}}, "cuSimgpuUnknownB");
  return stream->context->sticky;
}

}  // namespace

SIMGPU_API cuProfilerStart() {
  return Call(Needs::kContext).error;
}
SIMGPU_API cuProfilerStop() {
  return Call(Needs::kContext).error;
}

// Adds one to every byte, in stream order.
SIMGPU_API cuSimgpuUnknownA(CUdeviceptr address, size_t bytes, CUstream stream) {
  Call call(Needs::kContext);
  return touch(call, address, bytes, stream, false);
}

// The same on the default stream, and waits.
SIMGPU_API cuSimgpuUnknownB(CUdeviceptr address, size_t bytes) {
  Call call(Needs::kContext);
  return touch(call, address, bytes, nullptr, true);
}
