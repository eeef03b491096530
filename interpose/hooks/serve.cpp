// SPDX-License-Identifier: Apache-2.0
#include "interpose/hooks/serve.h"

#include <algorithm>

#include "interpose/driver/errors.h"
#include "interpose/driver/own_call.h"
#include "interpose/graphs/captures.h"
#include "interpose/hooks/foreign_callers.h"
#include "interpose/hooks/operation.h"
#include "interpose/life/fail_closed.h"
#include "interpose/life/start.h"
#include "interpose/rules.h"

namespace offload {
namespace {

constexpr uint64_t kAllocationsBetweenLooks = 512;
constexpr uint64_t kMostBytes = uint64_t{1} << 47;

void raise(std::atomic<uint64_t>& mark, uint64_t level) {
  uint64_t known = mark.load(std::memory_order_relaxed);
  while (known < level && !mark.compare_exchange_weak(known, level, std::memory_order_relaxed)) {
  }
}

// Also when something has left since: a library that was opened meanwhile may be about to use it.
bool time_to_look(const Session& active) {
  static constinit std::atomic<uint64_t> copies_at_look{0};
  const uint64_t copies = active.counts.copies_out.get();
  if (copies == copies_at_look.load(std::memory_order_relaxed))
    return active.counts.allocations.get() % kAllocationsBetweenLooks == 0;
  copies_at_look.store(copies, std::memory_order_relaxed);
  return true;
}

}  // namespace

Session* session_that_serves(const void* caller) {
  if (from_communication_library(caller)) {
    statistics().passed_through(PassThrough::foreign_library);
    return nullptr;
  }
  Session* active = session_for_allocation();
  return active != nullptr && active->native ? nullptr : active;
}

Session* session_that_serves_now(const void* caller) {
  if (options().ipc == Ipc::kNative) {
    note_allocation();
    statistics().passed_through(PassThrough::shared_with_others);
    return nullptr;
  }
  if (captures_watched() && captures_want_allocations() && obeys(Rule::kCaptureTakesFromDriver))
      [[unlikely]] {
    statistics().passed_through(PassThrough::capture);
    return nullptr;
  }
  return session_that_serves(caller);
}

// Nothing that is still to come names them: the memory is given back behind all that it is used by.
void forget_foreign_tables(CUdeviceptr address) {
  if (foreign_tables().empty()) return;
  CUdeviceptr base = 0;
  size_t bytes = 0;
  const RelaxedCapture relaxed(captures_watched());
  if (real<Entry::cuMemGetAddressRange_v2>()(&base, &bytes, address) == CUDA_SUCCESS)
    foreign_tables().forget(base, base + bytes);
}

CUresult said_if_out_of_memory(CUresult result, uint64_t bytes) {
  Session* active = result == CUDA_ERROR_OUT_OF_MEMORY ? session_in(current_context()) : nullptr;
  if (active == nullptr) return result;
  statistics().allocations_refused.add();
  say_out_of_memory(*active, bytes);
  return result;
}

CUresult served_by_driver(CUresult result, const void* caller) {
  if (result == CUDA_ERROR_OUT_OF_MEMORY) statistics().refused_elsewhere.add();
  if (result == CUDA_SUCCESS && session() != nullptr && !from_communication_library(caller))
    statistics().passed_through(PassThrough::unmanaged_memory);
  return result;
}

CUresult serve(Session& active, size_t bytes, StreamIndex stream, CUdeviceptr* out) {
  if (bytes > kMostBytes) {  // of which the engine may not make multiples
    statistics().allocations_refused.add();
    say_out_of_memory(active, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (time_to_look(active)) look_for_bypasses();
  Address address = 0;
  const Status status = stream == kNoStream
                            ? active.engine.allocate(bytes, &active.pins(), &address)
                            : active.engine.allocate_async(bytes, stream, &active.pins(), &address);
  if (status == Status::kOutOfMemory && !context_lost()) say_out_of_memory(active, bytes);
  if (const CUresult refused = code_of(status); refused != CUDA_SUCCESS) return refused;
  *out = address;
  const uint64_t live = active.engine.live_bytes();
  raise(active.pool_used_high, live);
  raise(active.pool_reserved_high, std::max(live, active.engine.mapped_bytes()));
  return CUDA_SUCCESS;
}

}  // namespace offload
