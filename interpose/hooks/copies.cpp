// SPDX-License-Identifier: Apache-2.0
// Copies of plain ranges. The synchronous ones run on the default stream.

#include <algorithm>

#include "interpose/hooks/define.h"
#include "interpose/hooks/ranges.h"
#include "interpose/hooks/told_copies.h"

namespace offload {
namespace {

CUresult name_both(Operation& operation, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  statistics().copies.add();
  const CUresult target = name_range(operation, to, bytes);
  return target != CUDA_SUCCESS ? target : name_range(operation, from, bytes);
}

CUresult name_any(Operation& operation, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  const CUresult result = name_both(operation, to, from, bytes);
  if (result == CUDA_SUCCESS)
    watch_for_table(operation, to, reinterpret_cast<const void*>(from), bytes);
  return result;
}

CUdeviceptr address_of(const void* host) {
  return reinterpret_cast<CUdeviceptr>(host);
}

}  // namespace

template <Entry E>
CUresult memcpy_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                     size_t bytes) {
  const auto name = [=](Operation& operation) { return name_any(operation, to, from, bytes); };
  return operate<E>(nullptr, name, to, to_context, from, from_context, bytes);
}

template <Entry E>
CUresult memcpy_peer_async(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                           CUcontext from_context, size_t bytes, CUstream stream) {
  const auto name = [=](Operation& operation) { return name_any(operation, to, from, bytes); };
  return operate<E>(stream, name, to, to_context, from, from_context, bytes, stream);
}

// As the plain entry that stands in for it takes its default stream.
template <Entry E>
constexpr Entry kPeer = RealType<E>::per_thread ? Entry::cuMemcpyPeer_ptds : Entry::cuMemcpyPeer;
template <Entry E>
constexpr Entry kPeerAsync =
    RealType<E>::per_thread ? Entry::cuMemcpyPeerAsync_ptsz : Entry::cuMemcpyPeerAsync;

namespace {

struct Types {
  CUmemorytype to;
  CUmemorytype from;
};
constexpr Types kAny{CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED};
constexpr Types kDevices{CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE};
constexpr Types kFromHost{CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST};
constexpr Types kToHost{CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE};

// Where one end is no device's: of the copies that are told contexts only those of boxes do that.
// `stream`: one for an entry that takes one.
template <Entry kRow, typename Name, typename... Stream>
CUresult copy_rows(CUdeviceptr to, CUdeviceptr from, const Types& types, const Ends& ends,
                   size_t bytes, const Name& name, Stream... stream) {
  constexpr size_t kLongest = size_t{1} << 30;  // drivers take a little less than 2 GiB
  for (size_t done = 0; done < bytes; done += kLongest) {
    CUDA_MEMCPY3D_PEER row{};
    row.dstMemoryType = types.to;
    row.dstDevice = to + done;
    row.dstHost = reinterpret_cast<void*>(to + done);
    row.dstContext = ends.to;
    row.srcMemoryType = types.from;
    row.srcDevice = from + done;
    row.srcHost = reinterpret_cast<const void*>(from + done);
    row.srcContext = ends.from;
    row.WidthInBytes = row.srcPitch = row.dstPitch = std::min(bytes - done, kLongest);
    row.dstHeight = row.srcHeight = row.Height = row.Depth = 1;
    // All is named each time, so that what leaves its allocation is refused before a byte is
    // copied.
    const CUresult result = operate<kRow>(CUstream{stream...}, name, &row, stream...);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

template <Entry E, typename Name>
CUresult copy_rows_async(CUdeviceptr to, CUdeviceptr from, const Types& types, const Ends& ends,
                         size_t bytes, const Name& name, CUstream stream) {
  constexpr Entry kRow =
      RealType<E>::per_thread ? Entry::cuMemcpy3DPeerAsync_ptsz : Entry::cuMemcpy3DPeerAsync;
  return copy_rows<kRow>(to, from, types, ends, bytes, name, stream);
}

template <Entry E, typename Name>
CUresult copy_rows_and_wait(CUdeviceptr to, CUdeviceptr from, const Types& types, const Ends& ends,
                            size_t bytes, const Name& name) {
  constexpr Entry kRow =
      RealType<E>::per_thread ? Entry::cuMemcpy3DPeer_ptds : Entry::cuMemcpy3DPeer;
  const CUresult result = copy_rows<kRow>(to, from, types, ends, bytes, name);
  return result == CUDA_SUCCESS ? wait_for_told_copy(RealType<E>::per_thread) : result;
}

template <Entry E>
bool must_tell(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream, Ends* ends) {
  return bytes != 0 && must_be_told(to, from, stream, RealType<E>::per_thread, ends);
}

template <Entry E>
CUresult copy(CUdeviceptr to, CUdeviceptr from, const Types& types, size_t bytes) {
  const auto name = [=](Operation& operation) { return name_any(operation, to, from, bytes); };
  if (Ends ends; must_tell<E>(to, from, bytes, nullptr, &ends)) [[unlikely]] {
    if (!ends.both_on_devices) return copy_rows_and_wait<E>(to, from, types, ends, bytes, name);
    return memcpy_peer<kPeer<E>>(to, ends.to, from, ends.from, bytes);
  }
  return operate<E>(nullptr, name, to, from, bytes);
}

template <Entry E>
CUresult copy_async(CUdeviceptr to, CUdeviceptr from, const Types& types, size_t bytes,
                    CUstream stream) {
  const auto name = [=](Operation& operation) { return name_any(operation, to, from, bytes); };
  if (Ends ends; must_tell<E>(to, from, bytes, stream, &ends)) [[unlikely]] {
    if (!ends.both_on_devices)
      return copy_rows_async<E>(to, from, types, ends, bytes, name, stream);
    return memcpy_peer_async<kPeerAsync<E>>(to, ends.to, from, ends.from, bytes, stream);
  }
  return operate<E>(stream, name, to, from, bytes, stream);
}

}  // namespace

template <Entry E>
CUresult memcpy_any(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy<E>(to, from, kAny, bytes);
}

template <Entry E>
CUresult memcpy_any_async(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_async<E>(to, from, kAny, bytes, stream);
}

template <Entry E>
CUresult memcpy_htod(CUdeviceptr to, const void* from, size_t bytes) {
  const auto name = [=](Operation& operation) {
    return name_any(operation, to, address_of(from), bytes);
  };
  if (Ends ends; must_tell<E>(to, 0, bytes, nullptr, &ends)) [[unlikely]]
    return copy_rows_and_wait<E>(to, address_of(from), kFromHost, ends, bytes, name);
  return operate<E>(nullptr, name, to, from, bytes);
}

template <Entry E>
CUresult memcpy_htod_async(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  const auto name = [=](Operation& operation) {
    return name_any(operation, to, address_of(from), bytes);
  };
  if (Ends ends; must_tell<E>(to, 0, bytes, stream, &ends)) [[unlikely]]
    return copy_rows_async<E>(to, address_of(from), kFromHost, ends, bytes, name, stream);
  return operate<E>(stream, name, to, from, bytes, stream);
}

template <Entry E>
CUresult memcpy_dtoh(void* to, CUdeviceptr from, size_t bytes) {
  const auto name = [=](Operation& operation) {
    return name_both(operation, address_of(to), from, bytes);
  };
  if (Ends ends; must_tell<E>(0, from, bytes, nullptr, &ends)) [[unlikely]]
    return copy_rows_and_wait<E>(address_of(to), from, kToHost, ends, bytes, name);
  return operate<E>(nullptr, name, to, from, bytes);
}

template <Entry E>
CUresult memcpy_dtoh_async(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  const auto name = [=](Operation& operation) {
    return name_both(operation, address_of(to), from, bytes);
  };
  if (Ends ends; must_tell<E>(0, from, bytes, stream, &ends)) [[unlikely]]
    return copy_rows_async<E>(address_of(to), from, kToHost, ends, bytes, name, stream);
  return operate<E>(stream, name, to, from, bytes, stream);
}

template <Entry E>
CUresult memcpy_dtod(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy<E>(to, from, kDevices, bytes);
}

template <Entry E>
CUresult memcpy_dtod_async(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_async<E>(to, from, kDevices, bytes, stream);
}

template <Entry E>
CUresult memcpy_dtoa(CUarray to, size_t to_offset, CUdeviceptr from, size_t bytes) {
  const auto name = [=](Operation& operation) { return name_both(operation, 0, from, bytes); };
  return operate<E>(nullptr, name, to, to_offset, from, bytes);
}

template <Entry E>
CUresult memcpy_atod(CUdeviceptr to, CUarray from, size_t from_offset, size_t bytes) {
  const auto name = [=](Operation& operation) { return name_both(operation, to, 0, bytes); };
  return operate<E>(nullptr, name, to, from, from_offset, bytes);
}

}  // namespace offload

#define FAMILY_copies DEFINE_HOOK
#include "interpose/hooks/families.h"
