// SPDX-License-Identifier: Apache-2.0
// Copies of plain ranges, and batches of them. The synchronous ones run on the default stream.

#include <algorithm>

#include "interpose/hooks/define.h"
#include "interpose/hooks/ranges.h"

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

CUDA_MEMCPY3D_PEER row_of(CUdeviceptr to, CUdeviceptr from, const Ends& ends) {
  CUDA_MEMCPY3D_PEER row{};
  row.dstMemoryType = ends.to != nullptr ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  row.dstDevice = to;
  row.dstHost = reinterpret_cast<void*>(to);
  row.dstContext = ends.to;
  row.srcMemoryType = ends.from != nullptr ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  row.srcDevice = from;
  row.srcHost = reinterpret_cast<const void*>(from);
  row.srcContext = ends.from;
  row.dstHeight = row.srcHeight = row.Height = row.Depth = 1;
  return row;
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

// Between a device and the host, whose context is null: of the plain copies only those of boxes
// can be told that.
template <Entry E>
CUresult copy_row_async(CUdeviceptr to, CUdeviceptr from, const Ends& ends, size_t bytes,
                        CUstream stream) {
  constexpr Entry kRow =
      RealType<E>::per_thread ? Entry::cuMemcpy3DPeerAsync_ptsz : Entry::cuMemcpy3DPeerAsync;
  constexpr size_t kLongest = size_t{1} << 30;  // drivers take a little less than 2 GiB
  for (size_t done = 0; done < bytes; done += kLongest) {
    CUDA_MEMCPY3D_PEER row = row_of(to + done, from + done, ends);
    row.WidthInBytes = row.srcPitch = row.dstPitch = std::min(bytes - done, kLongest);
    const auto name = [&row, to, from, done](Operation& operation) {
      return name_any(operation, to + done, from + done, row.WidthInBytes);
    };
    const CUresult result = operate<kRow>(stream, name, &row, stream);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

template <Entry E>
CUresult copy_row(CUdeviceptr to, CUdeviceptr from, const Ends& ends, size_t bytes) {
  const CUresult result = copy_row_async<E>(to, from, ends, bytes, nullptr);
  if (result != CUDA_SUCCESS) return result;
  const CUresult waited =
      real<Entry::cuStreamSynchronize>()(explicit_stream(nullptr, RealType<E>::per_thread));
  note_result(waited);
  return waited;
}

}  // namespace

template <Entry E>
CUresult memcpy_any(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  if (Ends ends; lie_apart(to, from, nullptr, &ends)) [[unlikely]] {
    if (ends.to == nullptr || ends.from == nullptr) return copy_row<E>(to, from, ends, bytes);
    return memcpy_peer<kPeer<E>>(to, ends.to, from, ends.from, bytes);
  }
  const auto name = [=](Operation& operation) { return name_any(operation, to, from, bytes); };
  return operate<E>(nullptr, name, to, from, bytes);
}

template <Entry E>
CUresult memcpy_any_async(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  if (Ends ends; lie_apart(to, from, stream, &ends)) [[unlikely]] {
    if (ends.to == nullptr || ends.from == nullptr)
      return copy_row_async<E>(to, from, ends, bytes, stream);
    return memcpy_peer_async<kPeerAsync<E>>(to, ends.to, from, ends.from, bytes, stream);
  }
  const auto name = [=](Operation& operation) { return name_any(operation, to, from, bytes); };
  return operate<E>(stream, name, to, from, bytes, stream);
}

namespace {

CUresult name_batch(Operation& operation, const CUdeviceptr* to, const CUdeviceptr* from,
                    const size_t* bytes, size_t count) {
  if (to == nullptr || from == nullptr || bytes == nullptr) return CUDA_SUCCESS;
  for (size_t i = 0; i < count; ++i) {
    const CUresult result = name_both(operation, to[i], from[i], bytes[i]);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

// A batch is told no contexts, so its copies go one by one then. A batch that is none is left to
// the driver, which refuses it.
bool goes_one_by_one(const CUdeviceptr* to, const CUdeviceptr* from, const size_t* bytes,
                     size_t count, CUstream stream) {
  if (to == nullptr || from == nullptr || bytes == nullptr || stream == nullptr ||
      stream == CU_STREAM_LEGACY)
    return false;
  bool apart = false;
  for (size_t i = 0; i < count; ++i) {
    if (bytes[i] == 0) return false;
    Ends ends;
    apart = apart || lie_apart(to[i], from[i], stream, &ends);
  }
  return apart;
}

// `failed`: the one that was refused; may be null.
template <Entry E>
CUresult copy_one_by_one(const CUdeviceptr* to, const CUdeviceptr* from, const size_t* bytes,
                         size_t count, size_t* failed, CUstream stream) {
  constexpr Entry kOne = RealType<E>::per_thread ? Entry::cuMemcpyAsync_ptsz : Entry::cuMemcpyAsync;
  for (size_t i = 0; i < count; ++i) {
    const CUresult result = memcpy_any_async<kOne>(to[i], from[i], bytes[i], stream);
    if (result == CUDA_SUCCESS) continue;
    if (failed != nullptr) *failed = i;
    return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace

// The first form also tells which copy failed; where we refuse one, no single copy is named.
template <Entry E>
CUresult memcpy_batch_v1(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                         CUmemcpyAttributes* attributes, size_t* attribute_indices,
                         size_t attribute_count, size_t* failed, CUstream stream) {
  if (goes_one_by_one(to, from, bytes, count, stream))
    return copy_one_by_one<E>(to, from, bytes, count, failed, stream);
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
  if (goes_one_by_one(to, from, bytes, count, stream))
    return copy_one_by_one<E>(to, from, bytes, count, nullptr, stream);
  const auto name = [=](Operation& operation) {
    return name_batch(operation, to, from, bytes, count);
  };
  return operate<E>(stream, name, to, from, bytes, count, attributes, attribute_indices,
                    attribute_count, stream);
}

template <Entry E>
CUresult memcpy_htod(CUdeviceptr to, const void* from, size_t bytes) {
  if (CUcontext there = context_elsewhere(to, nullptr); there != nullptr) [[unlikely]]
    return copy_row<E>(to, address_of(from), {there, nullptr}, bytes);
  const auto name = [=](Operation& operation) {
    return name_any(operation, to, address_of(from), bytes);
  };
  return operate<E>(nullptr, name, to, from, bytes);
}

template <Entry E>
CUresult memcpy_htod_async(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  if (CUcontext there = context_elsewhere(to, stream); there != nullptr) [[unlikely]]
    return copy_row_async<E>(to, address_of(from), {there, nullptr}, bytes, stream);
  const auto name = [=](Operation& operation) {
    return name_any(operation, to, address_of(from), bytes);
  };
  return operate<E>(stream, name, to, from, bytes, stream);
}

template <Entry E>
CUresult memcpy_dtoh(void* to, CUdeviceptr from, size_t bytes) {
  if (CUcontext there = context_elsewhere(from, nullptr); there != nullptr) [[unlikely]]
    return copy_row<E>(address_of(to), from, {nullptr, there}, bytes);
  const auto name = [=](Operation& operation) {
    return name_both(operation, address_of(to), from, bytes);
  };
  return operate<E>(nullptr, name, to, from, bytes);
}

template <Entry E>
CUresult memcpy_dtoh_async(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  if (CUcontext there = context_elsewhere(from, stream); there != nullptr) [[unlikely]]
    return copy_row_async<E>(address_of(to), from, {nullptr, there}, bytes, stream);
  const auto name = [=](Operation& operation) {
    return name_both(operation, address_of(to), from, bytes);
  };
  return operate<E>(stream, name, to, from, bytes, stream);
}

template <Entry E>
CUresult memcpy_dtod(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return memcpy_any<E>(to, from, bytes);
}

template <Entry E>
CUresult memcpy_dtod_async(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return memcpy_any_async<E>(to, from, bytes, stream);
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
