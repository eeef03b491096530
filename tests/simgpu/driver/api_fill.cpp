// SPDX-License-Identifier: Apache-2.0
// Fills. None of them blocks, but one of pinned host memory that is not called "Async".
#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/exec/capture.h"
#include "tests/simgpu/exec/engine.h"
#include "tests/simgpu/exec/graph_memory.h"
#include "tests/simgpu/exec/transfer_op.h"

using simgpu::address_space;
using simgpu::Call;
using simgpu::DefaultStream;
using simgpu::engine;
using simgpu::Needs;

namespace {

CUresult fill(CUstream handle, DefaultStream preset, bool sync, CUdeviceptr address, size_t pitch,
              uint32_t value, size_t element, size_t width, size_t height) {
  Call call(Needs::kContext, sync ? simgpu::Capturing::kUnsafe : simgpu::Capturing::kHarmless);
  if (call.error != CUDA_SUCCESS) return call.error;
  simgpu::Stream* stream = call.stream(handle, preset);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult error = Call::stream_error(*stream); error != CUDA_SUCCESS) return error;
  const size_t bytes = width * element;
  if (bytes == 0 || height == 0) return CUDA_SUCCESS;
  if (address % element != 0 || (height > 1 && pitch < bytes)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t y = 0; y < height; ++y) {
    const uintptr_t row = address + y * pitch;
    if (address_space().is_one_range(row, bytes)) continue;
    if (stream->capture == nullptr || !simgpu::graph_memory::holds(row, bytes))
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (stream->capture != nullptr) {
    simgpu::FillNode node;
    node.what = {address,
                 pitch,
                 value,
                 static_cast<unsigned>(element),
                 width,
                 height,
                 reinterpret_cast<CUcontext>(stream->context)};
    return simgpu::captures::add(*stream, node);
  }
  const bool host = address_space().find(address)->device < 0;
  const uint64_t number = engine().submit(
      call.lock, *stream,
      std::make_unique<simgpu::FillOp>(address, pitch, bytes, height, value, element));
  if (!sync || !host) return CUDA_SUCCESS;
  engine().synchronize(call.lock, {{stream, number}}, "a fill of host memory");
  return stream->context->sticky;
}

template <DefaultStream preset>
CUresult d8(CUdeviceptr a, unsigned char v, size_t n) {
  return fill(nullptr, preset, true, a, 0, v, 1, n, 1);
}
template <DefaultStream preset>
CUresult d16(CUdeviceptr a, unsigned short v, size_t n) {
  return fill(nullptr, preset, true, a, 0, v, 2, n, 1);
}
template <DefaultStream preset>
CUresult d32(CUdeviceptr a, unsigned v, size_t n) {
  return fill(nullptr, preset, true, a, 0, v, 4, n, 1);
}
template <DefaultStream preset>
CUresult d2d8(CUdeviceptr a, size_t pitch, unsigned char v, size_t w, size_t h) {
  return fill(nullptr, preset, true, a, pitch, v, 1, w, h);
}
template <DefaultStream preset>
CUresult d2d16(CUdeviceptr a, size_t pitch, unsigned short v, size_t w, size_t h) {
  return fill(nullptr, preset, true, a, pitch, v, 2, w, h);
}
template <DefaultStream preset>
CUresult d2d32(CUdeviceptr a, size_t pitch, unsigned v, size_t w, size_t h) {
  return fill(nullptr, preset, true, a, pitch, v, 4, w, h);
}
template <DefaultStream preset>
CUresult d8_async(CUdeviceptr a, unsigned char v, size_t n, CUstream s) {
  return fill(s, preset, false, a, 0, v, 1, n, 1);
}
template <DefaultStream preset>
CUresult d16_async(CUdeviceptr a, unsigned short v, size_t n, CUstream s) {
  return fill(s, preset, false, a, 0, v, 2, n, 1);
}
template <DefaultStream preset>
CUresult d32_async(CUdeviceptr a, unsigned v, size_t n, CUstream s) {
  return fill(s, preset, false, a, 0, v, 4, n, 1);
}
template <DefaultStream preset>
CUresult d2d8_async(CUdeviceptr a, size_t pitch, unsigned char v, size_t w, size_t h, CUstream s) {
  return fill(s, preset, false, a, pitch, v, 1, w, h);
}
template <DefaultStream preset>
CUresult d2d16_async(CUdeviceptr a, size_t pitch, unsigned short v, size_t w, size_t h,
                     CUstream s) {
  return fill(s, preset, false, a, pitch, v, 2, w, h);
}
template <DefaultStream preset>
CUresult d2d32_async(CUdeviceptr a, size_t pitch, unsigned v, size_t w, size_t h, CUstream s) {
  return fill(s, preset, false, a, pitch, v, 4, w, h);
}

}  // namespace

SIMGPU_STREAM_API(cuMemsetD8_v2, _ptds, d8, (CUdeviceptr a, unsigned char v, size_t n), (a, v, n))
SIMGPU_STREAM_API(cuMemsetD16_v2, _ptds, d16, (CUdeviceptr a, unsigned short v, size_t n),
                  (a, v, n))
SIMGPU_STREAM_API(cuMemsetD32_v2, _ptds, d32, (CUdeviceptr a, unsigned int v, size_t n), (a, v, n))
SIMGPU_STREAM_API(cuMemsetD2D8_v2, _ptds, d2d8,
                  (CUdeviceptr a, size_t pitch, unsigned char v, size_t w, size_t h),
                  (a, pitch, v, w, h))
SIMGPU_STREAM_API(cuMemsetD2D16_v2, _ptds, d2d16,
                  (CUdeviceptr a, size_t pitch, unsigned short v, size_t w, size_t h),
                  (a, pitch, v, w, h))
SIMGPU_STREAM_API(cuMemsetD2D32_v2, _ptds, d2d32,
                  (CUdeviceptr a, size_t pitch, unsigned int v, size_t w, size_t h),
                  (a, pitch, v, w, h))
SIMGPU_STREAM_API(cuMemsetD8Async, _ptsz, d8_async,
                  (CUdeviceptr a, unsigned char v, size_t n, CUstream s), (a, v, n, s))
SIMGPU_STREAM_API(cuMemsetD16Async, _ptsz, d16_async,
                  (CUdeviceptr a, unsigned short v, size_t n, CUstream s), (a, v, n, s))
SIMGPU_STREAM_API(cuMemsetD32Async, _ptsz, d32_async,
                  (CUdeviceptr a, unsigned int v, size_t n, CUstream s), (a, v, n, s))
SIMGPU_STREAM_API(cuMemsetD2D8Async, _ptsz, d2d8_async,
                  (CUdeviceptr a, size_t pitch, unsigned char v, size_t w, size_t h, CUstream s),
                  (a, pitch, v, w, h, s))
SIMGPU_STREAM_API(cuMemsetD2D16Async, _ptsz, d2d16_async,
                  (CUdeviceptr a, size_t pitch, unsigned short v, size_t w, size_t h, CUstream s),
                  (a, pitch, v, w, h, s))
SIMGPU_STREAM_API(cuMemsetD2D32Async, _ptsz, d2d32_async,
                  (CUdeviceptr a, size_t pitch, unsigned int v, size_t w, size_t h, CUstream s),
                  (a, pitch, v, w, h, s))
