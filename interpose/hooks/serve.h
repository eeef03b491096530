// SPDX-License-Identifier: Apache-2.0
#pragma once
// An allocation that we serve, by either family of allocation hooks.

#include "interpose/hooks/device_memory.h"
#include "interpose/life/session.h"

namespace offload {

// The session that serves this caller's allocations; null: the driver does.
Session* session_that_serves(const void* caller);

// The same for cuMemAlloc and its like, which the user (OFFLOAD_IPC) or a capture may want to be
// the driver's.
Session* session_that_serves_now(const void* caller);

// On `stream`, or for cuMemAlloc on kNoStream. Out of memory has been said.
CUresult serve(Session& active, size_t bytes, StreamIndex stream, CUdeviceptr* out);

// What the driver answered to an allocation that we do not serve; returns it.
CUresult served_by_driver(CUresult result, const void* caller);

// An allocation of `bytes` (0: not known) that we do not serve.
template <typename Call>
CUresult by_driver(uint64_t bytes, const void* caller, Call&& call) {
  return served_by_driver(with_device_memory(session(), bytes, call), caller);
}

}  // namespace offload
