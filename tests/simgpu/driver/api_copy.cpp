// SPDX-License-Identifier: Apache-2.0
// Copies. What waits for what follows cuda.h ("API synchronization behavior"): copies from pageable
// memory are staged when the call is made, copies to it have finished when the call returns, device
// to device copies never block.
#include <cstring>

#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/objects.h"
#include "tests/simgpu/exec/engine.h"
#include "tests/simgpu/exec/transfer_op.h"
#include "tests/simgpu/memory/window.h"

using simgpu::address_space;
using simgpu::Call;
using simgpu::DefaultStream;
using simgpu::engine;
using simgpu::Extent;
using simgpu::Needs;
using simgpu::Place;

namespace {

constexpr size_t kStagedWithoutWaiting = 64 << 10;

enum class Side { kDevice, kHost, kAny };
enum class Waits { kAsync, kSync };

// Where a pointer leads. False: no memory that a copy may name.
bool find_place(uintptr_t address, Side side, const Extent& extent, Place* place) {
  place->address = address;
  const simgpu::Mapping* mapping = address_space().find(address);
  if (mapping == nullptr) {
    place->pageable = true;
    return side != Side::kDevice && !simgpu::window().contains(address);
  }
  // The device address of host memory is its host address.
  if (side == Side::kHost && mapping->device >= 0) return false;
  for (size_t z = 0; z < extent.depth; ++z) {
    for (size_t y = 0; y < extent.height; ++y) {
      if (!address_space().is_one_range(address + z * place->slice + y * place->pitch,
                                        extent.width)) {
        return false;
      }
    }
  }
  return true;
}

std::vector<std::byte> stage(const Place& from, const Extent& extent) {
  std::vector<std::byte> staged(extent.bytes());
  std::byte* out = staged.data();
  for (size_t z = 0; z < extent.depth; ++z) {
    for (size_t y = 0; y < extent.height; ++y, out += extent.width) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      const auto* row =
          reinterpret_cast<const std::byte*>(from.address + z * from.slice + y * from.pitch);
      std::memcpy(out, row, extent.width);
    }
  }
  return staged;
}

CUresult copy(Call& call, CUstream handle, DefaultStream preset, uintptr_t to_address, Side to_side,
              uintptr_t from_address, Side from_side, Place to, Place from, Extent extent,
              Waits waits) {
  if (call.error != CUDA_SUCCESS) return call.error;
  simgpu::Stream* stream = call.stream(handle, preset);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->context->sticky != CUDA_SUCCESS) return stream->context->sticky;
  if (extent.bytes() == 0) return CUDA_SUCCESS;
  if (!find_place(to_address, to_side, extent, &to) ||
      !find_place(from_address, from_side, extent, &from)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto on_device = [](const Place& place) {
    return !place.pageable && address_space().find(place.address)->device >= 0;
  };
  const bool device_to_device = on_device(to) && on_device(from);
  const bool small = extent.bytes() <= kStagedWithoutWaiting;
  std::vector<std::byte> staged;
  if (from.pageable && !to.pageable && (waits == Waits::kAsync || small))
    staged = stage(from, extent);
  const bool wait = to.pageable || (from.pageable && staged.empty()) ||
                    (waits == Waits::kSync && !device_to_device && staged.empty());
  auto op = std::make_unique<simgpu::CopyOp>(to, from, extent, std::move(staged));
  const uint64_t number = engine().submit(call.lock, *stream, std::move(op));
  if (!wait) return CUDA_SUCCESS;
  simgpu::Context* context = stream->context;
  engine().synchronize(call.lock, {{stream, number}}, "a synchronous copy");
  return context->sticky;
}

CUresult copy_1d(CUstream handle, DefaultStream preset, CUdeviceptr to, Side to_side,
                 CUdeviceptr from, Side from_side, size_t bytes, Waits waits) {
  Call call(Needs::kContext);
  return copy(call, handle, preset, to, to_side, from, from_side, {}, {}, {bytes, 1, 1}, waits);
}

CUdeviceptr plain(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

template <DefaultStream preset>
CUresult any_sync(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy_1d(nullptr, preset, to, Side::kAny, from, Side::kAny, bytes, Waits::kSync);
}
template <DefaultStream preset>
CUresult any_async(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_1d(stream, preset, to, Side::kAny, from, Side::kAny, bytes, Waits::kAsync);
}
template <DefaultStream preset>
CUresult htod_sync(CUdeviceptr to, const void* from, size_t bytes) {
  return copy_1d(nullptr, preset, to, Side::kDevice, plain(from), Side::kHost, bytes, Waits::kSync);
}
template <DefaultStream preset>
CUresult htod_async(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return copy_1d(stream, preset, to, Side::kDevice, plain(from), Side::kHost, bytes, Waits::kAsync);
}
template <DefaultStream preset>
CUresult dtoh_sync(void* to, CUdeviceptr from, size_t bytes) {
  return copy_1d(nullptr, preset, plain(to), Side::kHost, from, Side::kDevice, bytes, Waits::kSync);
}
template <DefaultStream preset>
CUresult dtoh_async(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_1d(stream, preset, plain(to), Side::kHost, from, Side::kDevice, bytes, Waits::kAsync);
}
template <DefaultStream preset>
CUresult dtod_sync(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy_1d(nullptr, preset, to, Side::kDevice, from, Side::kDevice, bytes, Waits::kSync);
}
template <DefaultStream preset>
CUresult dtod_async(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_1d(stream, preset, to, Side::kDevice, from, Side::kDevice, bytes, Waits::kAsync);
}

// Peers: on one device that is a plain copy; between devices it is not modelled yet.
CUresult peer(CUstream handle, DefaultStream preset, CUdeviceptr to, CUcontext to_context,
              CUdeviceptr from, CUcontext from_context, size_t bytes, Waits waits) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  const simgpu::Context* a = simgpu::contexts().find(to_context);
  const simgpu::Context* b = simgpu::contexts().find(from_context);
  if (a == nullptr || b == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (a->device != b->device) return CUDA_ERROR_NOT_SUPPORTED;
  return copy(call, handle, preset, to, Side::kDevice, from, Side::kDevice, {}, {}, {bytes, 1, 1},
              waits);
}
template <DefaultStream preset>
CUresult peer_sync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                   size_t bytes) {
  return peer(nullptr, preset, to, to_context, from, from_context, bytes, Waits::kSync);
}
template <DefaultStream preset>
CUresult peer_async(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                    size_t bytes, CUstream stream) {
  return peer(stream, preset, to, to_context, from, from_context, bytes, Waits::kAsync);
}

bool side_of(CUmemorytype type, const void* host, CUdeviceptr device, Side* side, uintptr_t* base) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      *side = Side::kHost;
      *base = plain(host);
      return true;
    case CU_MEMORYTYPE_DEVICE:
      *side = Side::kDevice;
      *base = device;
      return true;
    case CU_MEMORYTYPE_UNIFIED:
      *side = Side::kAny;
      *base = device;
      return true;
    default:
      return false;  // arrays
  }
}

CUresult copy_3d(CUstream handle, DefaultStream preset, const CUDA_MEMCPY3D* what, Waits waits) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (what->srcMemoryType == CU_MEMORYTYPE_ARRAY || what->dstMemoryType == CU_MEMORYTYPE_ARRAY) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  Side to_side{};
  Side from_side{};
  uintptr_t to_base = 0;
  uintptr_t from_base = 0;
  if (!side_of(what->dstMemoryType, what->dstHost, what->dstDevice, &to_side, &to_base) ||
      !side_of(what->srcMemoryType, what->srcHost, what->srcDevice, &from_side, &from_base)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Extent extent{what->WidthInBytes, what->Height, what->Depth};
  Place to;
  Place from;
  to.pitch = what->dstPitch != 0 ? what->dstPitch : extent.width;
  from.pitch = what->srcPitch != 0 ? what->srcPitch : extent.width;
  const bool many_rows = extent.height > 1 || extent.depth > 1;
  if (many_rows && (to.pitch < extent.width + what->dstXInBytes ||
                    from.pitch < extent.width + what->srcXInBytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  to.slice = to.pitch * (what->dstHeight != 0 ? what->dstHeight : extent.height);
  from.slice = from.pitch * (what->srcHeight != 0 ? what->srcHeight : extent.height);
  to_base += what->dstZ * to.slice + what->dstY * to.pitch + what->dstXInBytes;
  from_base += what->srcZ * from.slice + what->srcY * from.pitch + what->srcXInBytes;
  return copy(call, handle, preset, to_base, to_side, from_base, from_side, to, from, extent,
              waits);
}

CUresult copy_2d(CUstream handle, DefaultStream preset, const CUDA_MEMCPY2D* what, Waits waits) {
  if (what == nullptr)
    return Call(Needs::kContext).error ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D wide = {};
  wide.srcXInBytes = what->srcXInBytes;
  wide.srcY = what->srcY;
  wide.srcMemoryType = what->srcMemoryType;
  wide.srcHost = what->srcHost;
  wide.srcDevice = what->srcDevice;
  wide.srcPitch = what->srcPitch;
  wide.dstXInBytes = what->dstXInBytes;
  wide.dstY = what->dstY;
  wide.dstMemoryType = what->dstMemoryType;
  wide.dstHost = what->dstHost;
  wide.dstDevice = what->dstDevice;
  wide.dstPitch = what->dstPitch;
  wide.WidthInBytes = what->WidthInBytes;
  wide.Height = what->Height;
  wide.Depth = 1;
  return copy_3d(handle, preset, &wide, waits);
}

template <DefaultStream preset>
CUresult rows_sync(const CUDA_MEMCPY2D* what) {
  return copy_2d(nullptr, preset, what, Waits::kSync);
}
template <DefaultStream preset>
CUresult rows_async(const CUDA_MEMCPY2D* what, CUstream stream) {
  return copy_2d(stream, preset, what, Waits::kAsync);
}
template <DefaultStream preset>
CUresult planes_sync(const CUDA_MEMCPY3D* what) {
  return copy_3d(nullptr, preset, what, Waits::kSync);
}
template <DefaultStream preset>
CUresult planes_async(const CUDA_MEMCPY3D* what, CUstream stream) {
  return copy_3d(stream, preset, what, Waits::kAsync);
}

}  // namespace

SIMGPU_STREAM_API(cuMemcpy, _ptds, any_sync, (CUdeviceptr to, CUdeviceptr from, size_t n),
                  (to, from, n))
SIMGPU_STREAM_API(cuMemcpyAsync, _ptsz, any_async,
                  (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s), (to, from, n, s))
SIMGPU_STREAM_API(cuMemcpyHtoD_v2, _ptds, htod_sync, (CUdeviceptr to, const void* from, size_t n),
                  (to, from, n))
SIMGPU_STREAM_API(cuMemcpyHtoDAsync_v2, _ptsz, htod_async,
                  (CUdeviceptr to, const void* from, size_t n, CUstream s), (to, from, n, s))
SIMGPU_STREAM_API(cuMemcpyDtoH_v2, _ptds, dtoh_sync, (void* to, CUdeviceptr from, size_t n),
                  (to, from, n))
SIMGPU_STREAM_API(cuMemcpyDtoHAsync_v2, _ptsz, dtoh_async,
                  (void* to, CUdeviceptr from, size_t n, CUstream s), (to, from, n, s))
SIMGPU_STREAM_API(cuMemcpyDtoD_v2, _ptds, dtod_sync, (CUdeviceptr to, CUdeviceptr from, size_t n),
                  (to, from, n))
SIMGPU_STREAM_API(cuMemcpyDtoDAsync_v2, _ptsz, dtod_async,
                  (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s), (to, from, n, s))
SIMGPU_STREAM_API(cuMemcpyPeer, _ptds, peer_sync,
                  (CUdeviceptr to, CUcontext tc, CUdeviceptr from, CUcontext fc, size_t n),
                  (to, tc, from, fc, n))
SIMGPU_STREAM_API(cuMemcpyPeerAsync, _ptsz, peer_async,
                  (CUdeviceptr to, CUcontext tc, CUdeviceptr from, CUcontext fc, size_t n,
                   CUstream s),
                  (to, tc, from, fc, n, s))
SIMGPU_STREAM_API(cuMemcpy2D_v2, _ptds, rows_sync, (const CUDA_MEMCPY2D* c), (c))
SIMGPU_STREAM_API(cuMemcpy2DUnaligned_v2, _ptds, rows_sync, (const CUDA_MEMCPY2D* c), (c))
SIMGPU_STREAM_API(cuMemcpy2DAsync_v2, _ptsz, rows_async, (const CUDA_MEMCPY2D* c, CUstream s),
                  (c, s))
SIMGPU_STREAM_API(cuMemcpy3D_v2, _ptds, planes_sync, (const CUDA_MEMCPY3D* c), (c))
SIMGPU_STREAM_API(cuMemcpy3DAsync_v2, _ptsz, planes_async, (const CUDA_MEMCPY3D* c, CUstream s),
                  (c, s))
