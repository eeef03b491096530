// SPDX-License-Identifier: Apache-2.0
// cuMemAllocAsync, cuMemAllocFromPoolAsync, cuMemFreeAsync. We play each device's default pool;
// others are the driver's. The stream's device decides, or that of the pool, whichever is current.

#include "interpose/graphs/captured_memory.h"
#include "interpose/hooks/define.h"
#include "interpose/hooks/foreign_callers.h"
#include "interpose/hooks/operation.h"
#include "interpose/hooks/serve.h"
#include "interpose/life/pytorch.h"

namespace offload {
namespace {

bool captures(CUstream stream, bool per_thread) {
  return captures_watched() &&
         look_at(explicit_stream(stream, per_thread)).kind != CaptureState::Kind::kNone;
}

// One that the driver serves. A node of a graph is not counted: its memory comes and goes with the
// launches.
template <typename Call>
CUresult allocated_by_driver(CUdeviceptr* out, size_t bytes, CUstream stream, bool per_thread,
                             const void* caller, Call&& call) {
  const bool watched = captures_watched();
  const CaptureState state =
      watched ? look_at(explicit_stream(stream, per_thread)) : CaptureState();
  const bool captured = state.kind != CaptureState::Kind::kNone;
  const CUresult result = by_driver(bytes, captured ? nullptr : out, caller, call);
  if (result == CUDA_SUCCESS) captured_memory_allocated(*out, state.id);
  return result;
}

// Memory of graphs, or of a pool that is the driver's.
template <typename Call>
CUresult freed_by_driver(CUdeviceptr address, Call&& call) {
  if (forget_lost_memory(address)) [[unlikely]]
    return CUDA_SUCCESS;
  return answer_to_free_of_captured(free_by_driver(address, call), address);
}

// Of a stream whose context is not current.
Session* session_of_stream(const void* caller, CUstream stream, StreamIndex* index) {
  CUcontext context = nullptr;
  const bool special =
      stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  if (special || from_communication_library(caller) ||
      real<Entry::cuStreamGetCtx>()(stream, &context) != CUDA_SUCCESS)
    return nullptr;
  Session* there = session_for_allocation_in(context);
  if (there == nullptr || there->native) return nullptr;
  *index = there->stream(stream, false);
  return there->is_own(*index) ? there : nullptr;
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
  if (active != nullptr) {
    *index = active->stream(stream, per_thread);
    if (active->is_own(*index)) return active;
  }
  return session_of_stream(caller, stream, index);
}

// A pool of another device than the stream's. Its memory is given out in the order of that stream.
Session* session_of_pool(CUmemoryPool pool, CUstream stream, bool per_thread, StreamIndex* index) {
  Session* there = find_session(
      [pool](const Session& each) { return !each.native && each.is_default_pool(pool); });
  if (there == nullptr) return nullptr;
  *index = there->follow(stream, per_thread);
  return is_followed(*index) ? there : nullptr;
}

}  // namespace

template <Entry E>
CUresult mem_alloc_async(CUdeviceptr* out, size_t bytes, CUstream stream) {
  const void* caller = __builtin_return_address(0);
  StreamIndex index = kNoStream;
  Session* active = session_on_stream(caller, out, bytes, stream, RealType<E>::per_thread, &index);
  if (active == nullptr || !active->default_pool_is_current.load(std::memory_order_relaxed)) {
    return allocated_by_driver(out, bytes, stream, RealType<E>::per_thread, caller,
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
  if (active != nullptr && !active->is_default_pool(pool))
    active = session_of_pool(pool, stream, RealType<E>::per_thread, &index);
  if (active == nullptr)
    return allocated_by_driver(out, bytes, stream, RealType<E>::per_thread, caller,
                               [&] { return real<E>()(out, bytes, pool, stream); });
  return serve(*active, bytes, index, out);
}

template <Entry E>
CUresult mem_free_async(CUdeviceptr address, CUstream stream) {
  if (session() == nullptr) return answer_to_free(real<E>()(address, stream), address);
  Session* owner = owner_of(address);
  if (owner == nullptr) return freed_by_driver(address, [&] { return real<E>()(address, stream); });
  // A capture frees only what a graph has allocated.
  if (captures(stream, RealType<E>::per_thread)) [[unlikely]]
    return CUDA_ERROR_INVALID_VALUE;
  StreamIndex index = owner->stream(stream, RealType<E>::per_thread);
  if (index == kForeignStream) index = owner->follow(stream, RealType<E>::per_thread);
  // Refused for its answer. PyTorch frees what was born on a stream that is gone.
  if (index == kRefusedStream && !is_async_pytorch()) return real<E>()(address, stream);
  // A stream that we cannot follow: the host waits for all of them.
  const Status status = is_followed(index)
                            ? owner->engine.free_async(address, index, &owner->pins())
                            : owner->engine.free(address, &owner->pins());
  return code_of(status);
}

}  // namespace offload

#define FAMILY_stream_ordered DEFINE_HOOK
#include "interpose/hooks/families.h"
