// SPDX-License-Identifier: Apache-2.0
// Copies of rectangles and boxes, and batches of copies. Both ends are reduced to the range from
// their first to their last byte.

#include "interpose/hooks/define.h"
#include "interpose/hooks/node_names.h"
#include "interpose/hooks/told_copies.h"

namespace offload {
namespace {

// One end of a copy of width x height x depth.
struct End {
  CUmemorytype type;
  CUdeviceptr device;
  size_t x, y, z;
  size_t pitch;   // bytes from row to row; 0: rows follow each other
  size_t height;  // rows from slice to slice
};
struct Extents {
  size_t width_bytes, height, depth;
};

size_t row_bytes(const End& end, size_t width_bytes) {
  return end.pitch != 0 ? end.pitch : end.x + width_bytes;
}

CUresult name_end(Operation& operation, const End& end, const Extents& extents) {
  if (end.type != CU_MEMORYTYPE_DEVICE && end.type != CU_MEMORYTYPE_UNIFIED) return CUDA_SUCCESS;
  if (extents.width_bytes == 0 || extents.height == 0 || extents.depth == 0) return CUDA_SUCCESS;
  const size_t pitch = row_bytes(end, extents.width_bytes);
  const size_t height = end.height != 0 ? end.height : end.y + extents.height;
  const CUdeviceptr first = end.device + (end.z * height + end.y) * pitch + end.x;
  const size_t bytes =
      ((extents.depth - 1) * height + extents.height - 1) * pitch + extents.width_bytes;
  return name_range(operation, first, bytes);
}

CUresult name_ends(Operation& operation, const End& to, const End& from, const Extents& extents) {
  statistics().copies.add();
  const CUresult target = name_end(operation, to, extents);
  return target != CUDA_SUCCESS ? target : name_end(operation, from, extents);
}

CUresult name_2d(Operation& operation, const CUDA_MEMCPY2D* copy) {
  if (copy == nullptr) return CUDA_SUCCESS;
  const End to = {
      copy->dstMemoryType, copy->dstDevice, copy->dstXInBytes, copy->dstY, 0, copy->dstPitch, 0};
  const End from = {
      copy->srcMemoryType, copy->srcDevice, copy->srcXInBytes, copy->srcY, 0, copy->srcPitch, 0};
  const CUresult named = name_ends(operation, to, from, {copy->WidthInBytes, copy->Height, 1});
  if (named != CUDA_SUCCESS || copy->WidthInBytes == 0 || copy->Height == 0) return named;
  // Rows that lie alike on both sides are one range, which may be a table of pointers.
  const bool from_host = copy->srcMemoryType == CU_MEMORYTYPE_HOST;
  const size_t to_pitch = row_bytes(to, copy->WidthInBytes);
  const size_t from_pitch = row_bytes(from, copy->WidthInBytes);
  if (copy->dstMemoryType == CU_MEMORYTYPE_HOST || copy->dstMemoryType == CU_MEMORYTYPE_ARRAY ||
      copy->srcMemoryType == CU_MEMORYTYPE_ARRAY || (to_pitch != from_pitch && copy->Height != 1))
    return named;
  const auto* source = from_host ? static_cast<const unsigned char*>(copy->srcHost)
                                 : reinterpret_cast<const unsigned char*>(copy->srcDevice);
  watch_for_table(operation, to.device + to.y * to_pitch + to.x,
                  source + from.y * from_pitch + from.x,
                  (copy->Height - 1) * to_pitch + copy->WidthInBytes);
  return named;
}

template <typename Copy>
CUresult name_3d(Operation& operation, const Copy* copy) {
  if (copy == nullptr) return CUDA_SUCCESS;
  const End to = {copy->dstMemoryType, copy->dstDevice, copy->dstXInBytes, copy->dstY,
                  copy->dstZ,          copy->dstPitch,  copy->dstHeight};
  const End from = {copy->srcMemoryType, copy->srcDevice, copy->srcXInBytes, copy->srcY,
                    copy->srcZ,          copy->srcPitch,  copy->srcHeight};
  return name_ends(operation, to, from, {copy->WidthInBytes, copy->Height, copy->Depth});
}

}  // namespace

CUresult name_copy(Operation& operation, const CUDA_MEMCPY3D* copy) {
  const CUresult named = name_3d(operation, copy);
  if (named != CUDA_SUCCESS || copy == nullptr || copy->Height != 1 || copy->Depth != 1)
    return named;
  const bool to_array = copy->dstMemoryType == CU_MEMORYTYPE_ARRAY;
  if (to_array || copy->srcMemoryType == CU_MEMORYTYPE_ARRAY) return named;
  const bool from_host = copy->srcMemoryType == CU_MEMORYTYPE_HOST;
  const auto* source = from_host ? static_cast<const unsigned char*>(copy->srcHost)
                                 : reinterpret_cast<const unsigned char*>(copy->srcDevice);
  if (copy->dstMemoryType != CU_MEMORYTYPE_HOST && copy->srcY == 0 && copy->srcZ == 0 &&
      copy->dstY == 0 && copy->dstZ == 0) {
    watch_for_table(operation, copy->dstDevice + copy->dstXInBytes, source + copy->srcXInBytes,
                    copy->WidthInBytes);
  }
  return named;
}

namespace {

CUresult name_batch(Operation& operation, const CUdeviceptr* to, const CUdeviceptr* from,
                    const size_t* bytes, size_t count) {
  if (to == nullptr || from == nullptr || bytes == nullptr) return CUDA_SUCCESS;
  for (size_t i = 0; i < count; ++i) {
    statistics().copies.add();
    CUresult result = name_range(operation, to[i], bytes[i]);
    if (result == CUDA_SUCCESS) result = name_range(operation, from[i], bytes[i]);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult name_3d_batch(Operation& operation, const CUDA_MEMCPY3D_BATCH_OP* copies, size_t count) {
  if (copies == nullptr) return CUDA_SUCCESS;
  for (size_t i = 0; i < count; ++i) {
    statistics().copies.add();
    for (const CUmemcpy3DOperand* end : {&copies[i].dst, &copies[i].src}) {
      if (end->type == CU_MEMCPY_OPERAND_TYPE_POINTER) operation.name(end->op.ptr.ptr);
    }
  }
  return CUDA_SUCCESS;
}

CUresult name_box(Operation& operation, const CUDA_MEMCPY2D* copy) {
  return name_2d(operation, copy);
}
CUresult name_box(Operation& operation, const CUDA_MEMCPY3D* copy) {
  return name_3d(operation, copy);
}

CUdeviceptr address_of_end(CUmemorytype type, CUdeviceptr device) {
  const bool on_device = type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED;
  return on_device ? device : 0;
}

// The copy as it is told both contexts, where it must be.
template <Entry E, typename Copy>
bool must_tell(const Copy* copy, CUstream stream, Ends* ends, CUDA_MEMCPY3D_PEER* peer) {
  if (copy == nullptr || copy->WidthInBytes == 0 || copy->Height == 0) return false;
  const CUdeviceptr to = address_of_end(copy->dstMemoryType, copy->dstDevice);
  const CUdeviceptr from = address_of_end(copy->srcMemoryType, copy->srcDevice);
  if (!must_be_told(to, from, stream, RealType<E>::per_thread, ends)) [[likely]]
    return false;
  *peer = {};
  peer->srcXInBytes = copy->srcXInBytes;
  peer->srcY = copy->srcY;
  peer->srcMemoryType = copy->srcMemoryType;
  peer->srcDevice = copy->srcDevice;
  peer->srcHost = copy->srcHost;
  peer->srcArray = copy->srcArray;
  peer->srcContext = ends->from;
  peer->srcPitch = copy->srcPitch;
  peer->dstXInBytes = copy->dstXInBytes;
  peer->dstY = copy->dstY;
  peer->dstMemoryType = copy->dstMemoryType;
  peer->dstDevice = copy->dstDevice;
  peer->dstHost = copy->dstHost;
  peer->dstArray = copy->dstArray;
  peer->dstContext = ends->to;
  peer->dstPitch = copy->dstPitch;
  peer->WidthInBytes = copy->WidthInBytes;
  peer->Height = copy->Height;
  peer->Depth = 1;
  if constexpr (requires { copy->Depth; }) {
    peer->srcZ = copy->srcZ;
    peer->srcHeight = copy->srcHeight;
    peer->dstZ = copy->dstZ;
    peer->dstHeight = copy->dstHeight;
    peer->Depth = copy->Depth;
  }
  return true;
}

}  // namespace

template <Entry E>
CUresult memcpy_3d_peer(const CUDA_MEMCPY3D_PEER* copy) {
  return operate<E>(
      nullptr, [=](Operation& operation) { return name_3d(operation, copy); }, copy);
}
template <Entry E>
CUresult memcpy_3d_peer_async(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return operate<E>(
      stream, [=](Operation& operation) { return name_3d(operation, copy); }, copy, stream);
}

template <Entry E>
constexpr Entry kPeer =
    RealType<E>::per_thread ? Entry::cuMemcpy3DPeer_ptds : Entry::cuMemcpy3DPeer;
template <Entry E>
constexpr Entry kPeerAsync =
    RealType<E>::per_thread ? Entry::cuMemcpy3DPeerAsync_ptsz : Entry::cuMemcpy3DPeerAsync;

template <Entry E, typename Copy>
CUresult copy_box(const Copy* copy) {
  const auto name = [=](Operation& operation) { return name_box(operation, copy); };
  Ends ends;
  CUDA_MEMCPY3D_PEER peer;
  if (!must_tell<E>(copy, nullptr, &ends, &peer)) [[likely]]
    return operate<E>(nullptr, name, copy);
  const CUresult result = operate<kPeer<E>>(nullptr, name, &peer);
  if (result != CUDA_SUCCESS || ends.both_on_devices) return result;
  return wait_for_told_copy(RealType<E>::per_thread);
}
template <Entry E, typename Copy>
CUresult copy_box_async(const Copy* copy, CUstream stream) {
  const auto name = [=](Operation& operation) { return name_box(operation, copy); };
  Ends ends;
  CUDA_MEMCPY3D_PEER peer;
  if (!must_tell<E>(copy, stream, &ends, &peer)) [[likely]]
    return operate<E>(stream, name, copy, stream);
  return operate<kPeerAsync<E>>(stream, name, &peer, stream);
}

template <Entry E>
CUresult memcpy_2d(const CUDA_MEMCPY2D* copy) {
  return copy_box<E>(copy);
}
template <Entry E>
CUresult memcpy_2d_async(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return copy_box_async<E>(copy, stream);
}
template <Entry E>
CUresult memcpy_3d(const CUDA_MEMCPY3D* copy) {
  return copy_box<E>(copy);
}
template <Entry E>
CUresult memcpy_3d_async(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return copy_box_async<E>(copy, stream);
}

// The first form also tells which copy failed; where we refuse one, no single copy is named.
template <Entry E>
CUresult memcpy_batch_v1(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                         CUmemcpyAttributes* attributes, size_t* attribute_indices,
                         size_t attribute_count, size_t* failed, CUstream stream) {
  const auto name = [=](Operation& operation) {
    return name_batch(operation, to, from, bytes, count);
  };
  return operate<E>(stream, name, to, from, bytes, count, attributes, attribute_indices,
                    attribute_count, failed, stream);
}
template <Entry E>
CUresult memcpy_batch(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                      CUmemcpyAttributes* attributes, size_t* attribute_indices,
                      size_t attribute_count, CUstream stream) {
  const auto name = [=](Operation& operation) {
    return name_batch(operation, to, from, bytes, count);
  };
  return operate<E>(stream, name, to, from, bytes, count, attributes, attribute_indices,
                    attribute_count, stream);
}
template <Entry E>
CUresult memcpy_3d_batch_v1(size_t count, CUDA_MEMCPY3D_BATCH_OP* copies, size_t* failed,
                            unsigned long long flags, CUstream stream) {
  const auto name = [=](Operation& operation) { return name_3d_batch(operation, copies, count); };
  return operate<E>(stream, name, count, copies, failed, flags, stream);
}
template <Entry E>
CUresult memcpy_3d_batch(size_t count, CUDA_MEMCPY3D_BATCH_OP* copies, unsigned long long flags,
                         CUstream stream) {
  const auto name = [=](Operation& operation) { return name_3d_batch(operation, copies, count); };
  return operate<E>(stream, name, count, copies, flags, stream);
}

}  // namespace offload

#define FAMILY_box_copies DEFINE_HOOK
#include "interpose/hooks/families.h"
