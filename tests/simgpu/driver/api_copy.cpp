// SPDX-License-Identifier: Apache-2.0
// Copies. What waits for what follows cuda.h ("API synchronization behavior"): copies from pageable
// memory are staged when the call is made, copies to it have finished when the call returns, device
// to device copies never block.
#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/copy_request.h"
#include "tests/simgpu/driver/objects.h"
#include "tests/simgpu/exec/capture.h"
#include "tests/simgpu/exec/costs.h"
#include "tests/simgpu/exec/engine.h"

using simgpu::Call;
using simgpu::Capturing;
using simgpu::CopyRequest;
using simgpu::DefaultStream;
using simgpu::engine;
using simgpu::Needs;
using Side = simgpu::CopyRequest::Side;

namespace {

constexpr size_t kStagedWithoutWaiting = 64 << 10;

enum class Waits { kAsync, kSync };

Capturing safety(Waits waits) {
  return waits == Waits::kSync ? Capturing::kUnsafe : Capturing::kHarmless;
}

// CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: synchronous copies of it always wait.
bool synchronises(const simgpu::Place& place) {
  const simgpu::Mapping* mapping = simgpu::address_space().find(place.address);
  return mapping != nullptr && mapping->sync_memops;
}

CUresult copy(Call& call, CUstream handle, DefaultStream preset, CopyRequest request, Waits waits) {
  if (call.error != CUDA_SUCCESS) return call.error;
  simgpu::Stream* stream = call.stream(handle, preset);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult error = Call::stream_error(*stream); error != CUDA_SUCCESS) return error;
  const size_t bytes = request.extent.bytes();
  if (bytes == 0) return CUDA_SUCCESS;
  const auto when = stream->capture != nullptr ? simgpu::When::kInGraph : simgpu::When::kNow;
  if (!simgpu::resolve_copy(&request, when)) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture != nullptr) {
    return simgpu::captures::add(
        *stream,
        simgpu::CopyNode{simgpu::write_copy(request), reinterpret_cast<CUcontext>(stream->context),
                         request.to.device, request.from.device});
  }
  const simgpu::Place& to = request.to;
  const simgpu::Place& from = request.from;
  const bool device_to_device = simgpu::is_on_device(to) && simgpu::is_on_device(from);
  const bool small = bytes <= kStagedWithoutWaiting;
  std::vector<std::byte> staged;
  if (from.pageable && !to.pageable && (waits == Waits::kAsync || small)) {
    staged = simgpu::stage(from, request.extent);
    engine().spend(simgpu::staging_cost_ns(bytes));
  }
  const bool wait = to.pageable || (from.pageable && staged.empty()) ||
                    (waits == Waits::kSync && staged.empty() &&
                     (!device_to_device || synchronises(to) || synchronises(from)));
  auto op = std::make_unique<simgpu::CopyOp>(to, from, request.extent, std::move(staged));
  const uint64_t number = engine().submit(call.lock, *stream, std::move(op));
  if (!wait) return CUDA_SUCCESS;
  simgpu::Context* context = stream->context;
  engine().synchronize(call.lock, {{stream, number}}, "a synchronous copy");
  return context->sticky;
}

CUresult copy_1d(CUstream handle, DefaultStream preset, CUdeviceptr to, Side to_side,
                 CUdeviceptr from, Side from_side, size_t bytes, Waits waits) {
  Call call(Needs::kContext, safety(waits));
  CopyRequest request{to_side, from_side, {}, {}, {bytes, 1, 1}};
  request.to.address = to;
  request.from.address = from;
  return copy(call, handle, preset, request, waits);
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

// Between contexts: each side is seen by its own device, so no peer access is needed.
CUresult peer(CUstream handle, DefaultStream preset, CopyRequest request, CUcontext to,
              CUcontext from, Waits waits) {
  Call call(Needs::kContext, safety(waits));
  if (call.error != CUDA_SUCCESS) return call.error;
  const simgpu::Context* a = simgpu::contexts().find(to);
  const simgpu::Context* b = simgpu::contexts().find(from);
  if ((a == nullptr && request.to_side != Side::kHost) ||
      (b == nullptr && request.from_side != Side::kHost)) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (a != nullptr) request.to.device = a->device;
  if (b != nullptr) request.from.device = b->device;
  return copy(call, handle, preset, request, waits);
}

CUresult peer_1d(CUstream handle, DefaultStream preset, CUdeviceptr to, CUcontext to_context,
                 CUdeviceptr from, CUcontext from_context, size_t bytes, Waits waits) {
  CopyRequest request{Side::kDevice, Side::kDevice, {}, {}, {bytes, 1, 1}};
  request.to.address = to;
  request.from.address = from;
  return peer(handle, preset, request, to_context, from_context, waits);
}

template <DefaultStream preset>
CUresult peer_sync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                   size_t bytes) {
  return peer_1d(nullptr, preset, to, to_context, from, from_context, bytes, Waits::kSync);
}
template <DefaultStream preset>
CUresult peer_async(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                    size_t bytes, CUstream stream) {
  return peer_1d(stream, preset, to, to_context, from, from_context, bytes, Waits::kAsync);
}

CUresult copy_3d(CUstream handle, DefaultStream preset, const CUDA_MEMCPY3D* what, Waits waits) {
  Call call(Needs::kContext, safety(waits));
  if (call.error != CUDA_SUCCESS) return call.error;
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CopyRequest request;
  if (CUresult error = simgpu::read_copy(*what, &request); error != CUDA_SUCCESS) return error;
  return copy(call, handle, preset, request, waits);
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

CUresult peer_3d(CUstream handle, DefaultStream preset, const CUDA_MEMCPY3D_PEER* what,
                 Waits waits) {
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D plain_copy = {};
  plain_copy.srcXInBytes = what->srcXInBytes;
  plain_copy.srcY = what->srcY;
  plain_copy.srcZ = what->srcZ;
  plain_copy.srcMemoryType = what->srcMemoryType;
  plain_copy.srcHost = what->srcHost;
  plain_copy.srcDevice = what->srcDevice;
  plain_copy.srcPitch = what->srcPitch;
  plain_copy.srcHeight = what->srcHeight;
  plain_copy.dstXInBytes = what->dstXInBytes;
  plain_copy.dstY = what->dstY;
  plain_copy.dstZ = what->dstZ;
  plain_copy.dstMemoryType = what->dstMemoryType;
  plain_copy.dstHost = what->dstHost;
  plain_copy.dstDevice = what->dstDevice;
  plain_copy.dstPitch = what->dstPitch;
  plain_copy.dstHeight = what->dstHeight;
  plain_copy.WidthInBytes = what->WidthInBytes;
  plain_copy.Height = what->Height;
  plain_copy.Depth = what->Depth;
  CopyRequest request;
  const CUresult error = simgpu::read_copy(plain_copy, &request);
  if (error != CUDA_SUCCESS) return error;
  return peer(handle, preset, request, what->dstContext, what->srcContext, waits);
}

template <DefaultStream preset>
CUresult peer_3d_sync(const CUDA_MEMCPY3D_PEER* what) {
  return peer_3d(nullptr, preset, what, Waits::kSync);
}
template <DefaultStream preset>
CUresult peer_3d_async(const CUDA_MEMCPY3D_PEER* what, CUstream stream) {
  return peer_3d(stream, preset, what, Waits::kAsync);
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
SIMGPU_STREAM_API(cuMemcpy3DPeer, _ptds, peer_3d_sync, (const CUDA_MEMCPY3D_PEER* c), (c))
SIMGPU_STREAM_API(cuMemcpy3DPeerAsync, _ptsz, peer_3d_async,
                  (const CUDA_MEMCPY3D_PEER* c, CUstream s), (c, s))
