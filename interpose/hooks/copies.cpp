// SPDX-License-Identifier: Apache-2.0
// Copies of plain ranges. The synchronous ones run on the default stream.

#include "interpose/hooks/define.h"
#include "interpose/hooks/ranges.h"
#include "interpose/rules.h"

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

// Between devices a plain copy needs no peer access where both ends came from cuMemAlloc. Of memory
// like ours only the copies that are told both contexts know.
struct Ends {
  CUcontext to = nullptr;
  CUcontext from = nullptr;
};
bool lie_apart(CUdeviceptr to, CUdeviceptr from, Ends* ends) {
  if (!operations_look() || !obeys(Rule::kCopyTellsContexts)) [[likely]]
    return false;
  const Session* target = owner_of(to);
  const Session* source = owner_of(from);
  if (target == nullptr || source == nullptr || target == source) return false;
  *ends = {target->device.context, source->device.context};
  return true;
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

template <Entry E>
CUresult memcpy_any(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  if (Ends ends; lie_apart(to, from, &ends))
    return memcpy_peer<kPeer<E>>(to, ends.to, from, ends.from, bytes);
  const auto name = [=](Operation& operation) { return name_any(operation, to, from, bytes); };
  return operate<E>(nullptr, name, to, from, bytes);
}

template <Entry E>
CUresult memcpy_any_async(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  if (Ends ends; lie_apart(to, from, &ends))
    return memcpy_peer_async<kPeerAsync<E>>(to, ends.to, from, ends.from, bytes, stream);
  const auto name = [=](Operation& operation) { return name_any(operation, to, from, bytes); };
  return operate<E>(stream, name, to, from, bytes, stream);
}

template <Entry E>
CUresult memcpy_htod(CUdeviceptr to, const void* from, size_t bytes) {
  const auto name = [=](Operation& operation) {
    return name_any(operation, to, address_of(from), bytes);
  };
  return operate<E>(nullptr, name, to, from, bytes);
}

template <Entry E>
CUresult memcpy_htod_async(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  const auto name = [=](Operation& operation) {
    return name_any(operation, to, address_of(from), bytes);
  };
  return operate<E>(stream, name, to, from, bytes, stream);
}

template <Entry E>
CUresult memcpy_dtoh(void* to, CUdeviceptr from, size_t bytes) {
  const auto name = [=](Operation& operation) {
    return name_both(operation, address_of(to), from, bytes);
  };
  return operate<E>(nullptr, name, to, from, bytes);
}

template <Entry E>
CUresult memcpy_dtoh_async(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
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
