// SPDX-License-Identifier: Apache-2.0
// Copies between linear memory. A kind that names a direction goes to the driver's entry for that
// direction, the rest to the one that finds out from the addresses, as in the real runtime. Arrays
// are not modelled.

#include <cuda_runtime_api.h>

#include "tests/simgpu/runtime/boxes.h"
#include "tests/simgpu/runtime/call.h"
#include "tests/simgpu/runtime/devices.h"
#include "tests/simgpu/runtime/registry.h"

namespace simgpu::runtime {

namespace {

bool is_kind(cudaMemcpyKind kind) {
  return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

template <Flavor flavor>
cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return with_context([&](const Driver& api) {
    if (bytes == 0) return cudaSuccess;
    switch (kind) {
      case cudaMemcpyHostToDevice:
        return call(api.cuMemcpyHtoD[flavor], to_device(to), from, bytes);
      case cudaMemcpyDeviceToHost:
        return call(api.cuMemcpyDtoH[flavor], to, to_device(from), bytes);
      case cudaMemcpyDeviceToDevice:
        return call(api.cuMemcpyDtoD[flavor], to_device(to), to_device(from), bytes);
      default:
        if (!is_kind(kind)) return cudaErrorInvalidMemcpyDirection;
        return call(api.cuMemcpy[flavor], to_device(to), to_device(from), bytes);
    }
  });
}

template <Flavor flavor>
cudaError_t copy_async(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                       cudaStream_t stream) {
  return with_context([&](const Driver& api) {
    if (bytes == 0) return cudaSuccess;
    switch (kind) {
      case cudaMemcpyHostToDevice:
        return call(api.cuMemcpyHtoDAsync[flavor], to_device(to), from, bytes, stream);
      case cudaMemcpyDeviceToHost:
        return call(api.cuMemcpyDtoHAsync[flavor], to, to_device(from), bytes, stream);
      case cudaMemcpyDeviceToDevice:
        return call(api.cuMemcpyDtoDAsync[flavor], to_device(to), to_device(from), bytes, stream);
      default:
        if (!is_kind(kind)) return cudaErrorInvalidMemcpyDirection;
        return call(api.cuMemcpyAsync[flavor], to_device(to), to_device(from), bytes, stream);
    }
  });
}

// Where each side of a copy lies by its kind. Unified: the driver looks.
CUmemorytype source_type(cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  const bool host = kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice;
  return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

CUmemorytype destination_type(cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  const bool host = kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost;
  return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

CUDA_MEMCPY2D describe_rectangle(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                 size_t width, size_t height, cudaMemcpyKind kind) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = source_type(kind);
  copy.srcHost = from;
  copy.srcDevice = to_device(from);
  copy.srcPitch = from_pitch;
  copy.dstMemoryType = destination_type(kind);
  copy.dstHost = to;
  copy.dstDevice = to_device(to);
  copy.dstPitch = to_pitch;
  copy.WidthInBytes = width;
  copy.Height = height;
  return copy;
}

template <Flavor flavor>
cudaError_t copy_rectangle(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                           size_t width, size_t height, cudaMemcpyKind kind) {
  return with_context([&](const Driver& api) {
    if (!is_kind(kind)) return cudaErrorInvalidMemcpyDirection;
    if (width > to_pitch || width > from_pitch) return cudaErrorInvalidPitchValue;
    if (width == 0 || height == 0) return cudaSuccess;
    const auto copy = describe_rectangle(to, to_pitch, from, from_pitch, width, height, kind);
    return call(api.cuMemcpy2DUnaligned[flavor], &copy);
  });
}

template <Flavor flavor>
cudaError_t copy_rectangle_async(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                 size_t width, size_t height, cudaMemcpyKind kind,
                                 cudaStream_t stream) {
  return with_context([&](const Driver& api) {
    if (!is_kind(kind)) return cudaErrorInvalidMemcpyDirection;
    if (width > to_pitch || width > from_pitch) return cudaErrorInvalidPitchValue;
    if (width == 0 || height == 0) return cudaSuccess;
    const auto copy = describe_rectangle(to, to_pitch, from, from_pitch, width, height, kind);
    return call(api.cuMemcpy2DAsync[flavor], &copy, stream);
  });
}

}  // namespace

cudaError_t describe_box(const cudaMemcpy3DParms* from, CUDA_MEMCPY3D* copy) {
  if (from == nullptr || !is_kind(from->kind)) return cudaErrorInvalidValue;
  if (from->srcArray != nullptr || from->dstArray != nullptr) return cudaErrorNotSupported;
  *copy = {};
  copy->srcMemoryType = source_type(from->kind);
  copy->srcHost = from->srcPtr.ptr;
  copy->srcDevice = to_device(from->srcPtr.ptr);
  copy->srcPitch = from->srcPtr.pitch;
  copy->srcHeight = from->srcPtr.ysize;
  copy->srcXInBytes = from->srcPos.x;
  copy->srcY = from->srcPos.y;
  copy->srcZ = from->srcPos.z;
  copy->dstMemoryType = destination_type(from->kind);
  copy->dstHost = from->dstPtr.ptr;
  copy->dstDevice = to_device(from->dstPtr.ptr);
  copy->dstPitch = from->dstPtr.pitch;
  copy->dstHeight = from->dstPtr.ysize;
  copy->dstXInBytes = from->dstPos.x;
  copy->dstY = from->dstPos.y;
  copy->dstZ = from->dstPos.z;
  copy->WidthInBytes = from->extent.width;
  copy->Height = from->extent.height;
  copy->Depth = from->extent.depth;
  return cudaSuccess;
}

namespace {

template <Flavor flavor>
cudaError_t copy_box(const cudaMemcpy3DParms* parameters) {
  return with_context([&](const Driver& api) {
    CUDA_MEMCPY3D copy;
    const cudaError_t status = describe_box(parameters, &copy);
    return status == cudaSuccess ? call(api.cuMemcpy3D[flavor], &copy) : status;
  });
}

template <Flavor flavor>
cudaError_t copy_box_async(const cudaMemcpy3DParms* parameters, cudaStream_t stream) {
  return with_context([&](const Driver& api) {
    CUDA_MEMCPY3D copy;
    const cudaError_t status = describe_box(parameters, &copy);
    return status == cudaSuccess ? call(api.cuMemcpy3DAsync[flavor], &copy, stream) : status;
  });
}

cudaError_t both_contexts(int to, int from, CUcontext* to_context, CUcontext* from_context) {
  const cudaError_t status = primary_context(to, to_context);
  return status == cudaSuccess ? primary_context(from, from_context) : status;
}

// The address `offset` bytes into a variable of the program's device code.
cudaError_t inside_symbol(const void* symbol, size_t offset, void** address) {
  return with_context([&](const Driver&) {
    CUdeviceptr begin = 0;
    size_t bytes = 0;
    const cudaError_t status = find_variable(symbol, &begin, &bytes);
    *address = reinterpret_cast<void*>(begin + offset);
    return status;
  });
}

template <Flavor flavor>
cudaError_t copy_to_symbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                           cudaMemcpyKind kind) {
  void* address = nullptr;
  const cudaError_t status = inside_symbol(symbol, offset, &address);
  return status == cudaSuccess ? copy<flavor>(address, from, bytes, kind) : status;
}

template <Flavor flavor>
cudaError_t copy_from_symbol(void* to, const void* symbol, size_t bytes, size_t offset,
                             cudaMemcpyKind kind) {
  void* address = nullptr;
  const cudaError_t status = inside_symbol(symbol, offset, &address);
  return status == cudaSuccess ? copy<flavor>(to, address, bytes, kind) : status;
}

template <Flavor flavor>
cudaError_t copy_to_symbol_async(const void* symbol, const void* from, size_t bytes, size_t offset,
                                 cudaMemcpyKind kind, cudaStream_t stream) {
  void* address = nullptr;
  const cudaError_t status = inside_symbol(symbol, offset, &address);
  return status == cudaSuccess ? copy_async<flavor>(address, from, bytes, kind, stream) : status;
}

template <Flavor flavor>
cudaError_t copy_from_symbol_async(void* to, const void* symbol, size_t bytes, size_t offset,
                                   cudaMemcpyKind kind, cudaStream_t stream) {
  void* address = nullptr;
  const cudaError_t status = inside_symbol(symbol, offset, &address);
  return status == cudaSuccess ? copy_async<flavor>(to, address, bytes, kind, stream) : status;
}

}  // namespace

RUNTIME_PAIR(cudaMemcpy, _ptds, (void* to, const void* from, size_t bytes, cudaMemcpyKind kind),
             copy, (to, from, bytes, kind))
RUNTIME_PAIR(cudaMemcpyAsync, _ptsz,
             (void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream),
             copy_async, (to, from, bytes, kind, stream))
RUNTIME_PAIR(cudaMemcpy2D, _ptds,
             (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
              size_t height, cudaMemcpyKind kind),
             copy_rectangle, (to, to_pitch, from, from_pitch, width, height, kind))
RUNTIME_PAIR(cudaMemcpy2DAsync, _ptsz,
             (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
              size_t height, cudaMemcpyKind kind, cudaStream_t stream),
             copy_rectangle_async, (to, to_pitch, from, from_pitch, width, height, kind, stream))
RUNTIME_PAIR(cudaMemcpy3D, _ptds, (const cudaMemcpy3DParms* parameters), copy_box, (parameters))
RUNTIME_PAIR(cudaMemcpy3DAsync, _ptsz, (const cudaMemcpy3DParms* parameters, cudaStream_t stream),
             copy_box_async, (parameters, stream))
RUNTIME_PAIR(cudaMemcpyToSymbol, _ptds,
             (const void* symbol, const void* from, size_t bytes, size_t offset,
              cudaMemcpyKind kind),
             copy_to_symbol, (symbol, from, bytes, offset, kind))
RUNTIME_PAIR(cudaMemcpyFromSymbol, _ptds,
             (void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind),
             copy_from_symbol, (to, symbol, bytes, offset, kind))
RUNTIME_PAIR(cudaMemcpyToSymbolAsync, _ptsz,
             (const void* symbol, const void* from, size_t bytes, size_t offset,
              cudaMemcpyKind kind, cudaStream_t stream),
             copy_to_symbol_async, (symbol, from, bytes, offset, kind, stream))
RUNTIME_PAIR(cudaMemcpyFromSymbolAsync, _ptsz,
             (void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind,
              cudaStream_t stream),
             copy_from_symbol_async, (to, symbol, bytes, offset, kind, stream))

RUNTIME_API cudaMemcpyPeerAsync(void* to, int to_device_number, const void* from,
                                int from_device_number, size_t bytes, cudaStream_t stream) {
  return with_context([&](const Driver& api) {
    CUcontext to_context = nullptr;
    CUcontext from_context = nullptr;
    const cudaError_t status =
        both_contexts(to_device_number, from_device_number, &to_context, &from_context);
    if (status != cudaSuccess) return status;
    return call(api.cuMemcpyPeerAsync[kLegacy], to_device(to), to_context, to_device(from),
                from_context, bytes, stream);
  });
}

RUNTIME_API cudaMemcpyPeer(void* to, int to_device_number, const void* from, int from_device_number,
                           size_t bytes) {
  return with_context([&](const Driver& api) {
    CUcontext to_context = nullptr;
    CUcontext from_context = nullptr;
    const cudaError_t status =
        both_contexts(to_device_number, from_device_number, &to_context, &from_context);
    if (status != cudaSuccess) return status;
    return call(api.cuMemcpyPeer[kLegacy], to_device(to), to_context, to_device(from), from_context,
                bytes);
  });
}

}  // namespace simgpu::runtime
