// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/driver/copy_request.h"

#include <cstring>

#include "tests/simgpu/exec/graph_memory.h"
#include "tests/simgpu/memory/address_space.h"
#include "tests/simgpu/memory/window.h"

namespace simgpu {

namespace {

using Side = CopyRequest::Side;

bool find_place(Side side, const Extent& extent, When when, Place* place) {
  const Mapping* mapping = address_space().find(place->address);
  const size_t span =
      (extent.depth - 1) * place->slice + (extent.height - 1) * place->pitch + extent.width;
  place->pageable = mapping == nullptr;
  if (mapping == nullptr) {
    if (when == When::kInGraph && side != Side::kHost &&
        graph_memory::holds(place->address, span)) {
      place->pageable = false;
      return true;
    }
    return side != Side::kDevice && !window().contains(place->address);
  }
  // The device address of host memory is its host address.
  if (side == Side::kHost && mapping->device >= 0) return false;
  // No row may lie in the next allocation.
  return address_space().is_one_range(place->address, span);
}

bool side_of(CUmemorytype type, const void* host, CUdeviceptr device, Side* side, uintptr_t* base) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      *side = Side::kHost;
      *base = reinterpret_cast<uintptr_t>(host);
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

CUmemorytype type_of(Side side) {
  if (side == Side::kHost) return CU_MEMORYTYPE_HOST;
  return side == Side::kDevice ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_UNIFIED;
}

}  // namespace

CUresult read_copy(const CUDA_MEMCPY3D& what, CopyRequest* request) {
  if (what.srcMemoryType == CU_MEMORYTYPE_ARRAY || what.dstMemoryType == CU_MEMORYTYPE_ARRAY) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  CopyRequest& r = *request;
  uintptr_t to = 0;
  uintptr_t from = 0;
  if (!side_of(what.dstMemoryType, what.dstHost, what.dstDevice, &r.to_side, &to) ||
      !side_of(what.srcMemoryType, what.srcHost, what.srcDevice, &r.from_side, &from)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  r.extent = {what.WidthInBytes, what.Height, what.Depth};
  r.to.pitch = what.dstPitch != 0 ? what.dstPitch : r.extent.width;
  r.from.pitch = what.srcPitch != 0 ? what.srcPitch : r.extent.width;
  const bool many_rows = r.extent.height > 1 || r.extent.depth > 1;
  if (many_rows && (r.to.pitch < r.extent.width + what.dstXInBytes ||
                    r.from.pitch < r.extent.width + what.srcXInBytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  r.to.slice = r.to.pitch * (what.dstHeight != 0 ? what.dstHeight : r.extent.height);
  r.from.slice = r.from.pitch * (what.srcHeight != 0 ? what.srcHeight : r.extent.height);
  r.to.address = to + what.dstZ * r.to.slice + what.dstY * r.to.pitch + what.dstXInBytes;
  r.from.address = from + what.srcZ * r.from.slice + what.srcY * r.from.pitch + what.srcXInBytes;
  return CUDA_SUCCESS;
}

CUDA_MEMCPY3D write_copy(const CopyRequest& request) {
  CUDA_MEMCPY3D what = {};
  what.dstMemoryType = type_of(request.to_side);
  what.srcMemoryType = type_of(request.from_side);
  // NOLINTBEGIN(performance-no-int-to-ptr)
  if (request.to_side == Side::kHost) {
    what.dstHost = reinterpret_cast<void*>(request.to.address);
  } else {
    what.dstDevice = request.to.address;
  }
  if (request.from_side == Side::kHost) {
    what.srcHost = reinterpret_cast<const void*>(request.from.address);
  } else {
    what.srcDevice = request.from.address;
  }
  // NOLINTEND(performance-no-int-to-ptr)
  what.dstPitch = request.to.pitch;
  what.srcPitch = request.from.pitch;
  what.dstHeight = request.to.pitch != 0 ? request.to.slice / request.to.pitch : 0;
  what.srcHeight = request.from.pitch != 0 ? request.from.slice / request.from.pitch : 0;
  what.WidthInBytes = request.extent.width;
  what.Height = request.extent.height;
  what.Depth = request.extent.depth;
  return what;
}

bool resolve_copy(CopyRequest* request, When when) {
  return find_place(request->to_side, request->extent, when, &request->to) &&
         find_place(request->from_side, request->extent, when, &request->from);
}

bool is_on_device(const Place& place) {
  return !place.pageable && address_space().find(place.address)->device >= 0;
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

}  // namespace simgpu
