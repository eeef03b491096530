// SPDX-License-Identifier: Apache-2.0
// cuMemAllocAsync, cuMemAllocFromPoolAsync, cuMemFreeAsync. We play the device's default pool;
// others are the driver's.

#include "interpose/hooks/define.h"
#include "interpose/hooks/operation.h"
#include "interpose/hooks/serve.h"

namespace offload {
namespace {

bool captures(CUstream stream, bool per_thread) {
  return captures_watched() &&
         look_at(explicit_stream(stream, per_thread)).kind != CaptureState::Kind::kNone;
}

// Null for a node of a graph, whose memory comes and goes with its launches.
CUdeviceptr* counted(CUdeviceptr* out, CUstream stream, bool per_thread) {
  return captures(stream, per_thread) ? nullptr : out;
}

// Null: the driver serves.
Session* session_on_stream(const void* caller, CUdeviceptr* out, size_t bytes, CUstream stream,
                           bool per_thread, StreamIndex* index) {
  if (out == nullptr || bytes == 0) return nullptr;
  if (captures(stream, per_thread)) [[unlikely]] {
    statistics().passed_through(PassThrough::capture);
    return nullptr;  // a node of the graph allocates it
  }
  Session* active = session_that_serves(caller);
  if (active == nullptr) return nullptr;
  *index = active->stream(stream, per_thread);
  return active->is_own(*index) ? active : nullptr;
}

}  // namespace

template <Entry E>
CUresult mem_alloc_async(CUdeviceptr* out, size_t bytes, CUstream stream) {
  const void* caller = __builtin_return_address(0);
  StreamIndex index = kNoStream;
  Session* active = session_on_stream(caller, out, bytes, stream, RealType<E>::per_thread, &index);
  if (active == nullptr || !active->default_pool_is_current.load(std::memory_order_relaxed)) {
    return by_driver(bytes, counted(out, stream, RealType<E>::per_thread), caller,
                     [&] { return real<E>()(out, bytes, stream); });
  }
  return serve(*active, bytes, index, out);
}

template <Entry E>
CUresult mem_alloc_from_pool_async(CUdeviceptr* out, size_t bytes, CUmemoryPool pool,
                                   CUstream stream) {
  const void* caller = __builtin_return_address(0);
  StreamIndex index = kNoStream;
  Session* active = session_on_stream(caller, out, bytes, stream, RealType<E>::per_thread, &index);
  if (active == nullptr || !active->is_default_pool(pool))
    return by_driver(bytes, counted(out, stream, RealType<E>::per_thread), caller,
                     [&] { return real<E>()(out, bytes, pool, stream); });
  return serve(*active, bytes, index, out);
}

template <Entry E>
CUresult mem_free_async(CUdeviceptr address, CUstream stream) {
  Session* active = session();
  if (active == nullptr) return answer_to_free(real<E>()(address, stream), address);
  if (!active->engine.owns(address))
    return free_by_driver(address, [&] { return real<E>()(address, stream); });
  // A capture frees only what a graph has allocated.
  if (captures(stream, RealType<E>::per_thread)) [[unlikely]]
    return CUDA_ERROR_INVALID_VALUE;
  StreamIndex index = active->stream(stream, RealType<E>::per_thread);
  if (index == kForeignStream) index = active->follow(stream, RealType<E>::per_thread);
  if (index == kRefusedStream) return real<E>()(address, stream);  // for its answer
  // A stream that we cannot follow: the host waits for all of them.
  const Status status = is_followed(index)
                            ? active->engine.free_async(address, index, &active->pins())
                            : active->engine.free(address, &active->pins());
  return code_of(status);
}

}  // namespace offload

#define FAMILY_stream_ordered DEFINE_HOOK
#include "interpose/hooks/families.h"
