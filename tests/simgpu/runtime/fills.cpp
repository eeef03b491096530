// SPDX-License-Identifier: Apache-2.0
// Fills of linear memory with one byte value.

#include <cuda_runtime_api.h>

#include "tests/simgpu/runtime/call.h"

namespace simgpu::runtime {

namespace {

unsigned char to_byte(int value) {
  return static_cast<unsigned char>(value);
}

template <Flavor flavor>
cudaError_t fill(void* pointer, int value, size_t bytes) {
  return with_context([&](const Driver& api) {
    if (bytes == 0) return cudaSuccess;
    return call(api.cuMemsetD8[flavor], to_device(pointer), to_byte(value), bytes);
  });
}

template <Flavor flavor>
cudaError_t fill_async(void* pointer, int value, size_t bytes, cudaStream_t stream) {
  return with_context([&](const Driver& api) {
    if (bytes == 0) return cudaSuccess;
    return call(api.cuMemsetD8Async[flavor], to_device(pointer), to_byte(value), bytes, stream);
  });
}

template <Flavor flavor>
cudaError_t fill_rectangle(void* pointer, size_t pitch, int value, size_t width, size_t height) {
  return with_context([&](const Driver& api) {
    if (width == 0 || height == 0) return cudaSuccess;
    return call(api.cuMemsetD2D8[flavor], to_device(pointer), pitch, to_byte(value), width, height);
  });
}

template <Flavor flavor>
cudaError_t fill_rectangle_async(void* pointer, size_t pitch, int value, size_t width,
                                 size_t height, cudaStream_t stream) {
  return with_context([&](const Driver& api) {
    if (width == 0 || height == 0) return cudaSuccess;
    return call(api.cuMemsetD2D8Async[flavor], to_device(pointer), pitch, to_byte(value), width,
                height, stream);
  });
}

}  // namespace

RUNTIME_PAIR(cudaMemset, _ptds, (void* pointer, int value, size_t bytes), fill,
             (pointer, value, bytes))
RUNTIME_PAIR(cudaMemsetAsync, _ptsz, (void* pointer, int value, size_t bytes, cudaStream_t stream),
             fill_async, (pointer, value, bytes, stream))
RUNTIME_PAIR(cudaMemset2D, _ptds,
             (void* pointer, size_t pitch, int value, size_t width, size_t height), fill_rectangle,
             (pointer, pitch, value, width, height))
RUNTIME_PAIR(cudaMemset2DAsync, _ptsz,
             (void* pointer, size_t pitch, int value, size_t width, size_t height,
              cudaStream_t stream),
             fill_rectangle_async, (pointer, pitch, value, width, height, stream))

}  // namespace simgpu::runtime
