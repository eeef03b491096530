// SPDX-License-Identifier: Apache-2.0
#pragma once
// An allocation that we serve, by either family of allocation hooks.

#include "interpose/hooks/device_memory.h"
#include "interpose/life/sessions.h"

namespace offload {

// The session that serves this caller's allocations; null: the driver does.
Session* session_that_serves(const void* caller);

// The same for cuMemAlloc and its like, which the user (OFFLOAD_IPC) or a capture may want to be
// the driver's.
Session* session_that_serves_now(const void* caller);

// On `stream`, or for cuMemAlloc on kNoStream. Out of memory has been said.
CUresult serve(Session& active, size_t bytes, StreamIndex stream, CUdeviceptr* out);

// Says so if an allocation of ours or one that we count got that; returns `result`.
CUresult said_if_out_of_memory(CUresult result, uint64_t bytes);

// What the driver answered to an allocation that we do not serve; returns it.
CUresult served_by_driver(CUresult result, const void* caller);

// One within the limit of `native`, which is told what the driver made of it. `name`: where the
// call puts the address or handle.
template <typename Call>
CUresult by_driver_counted(NativeMemory& native, NativeMemory::Kind kind, uint64_t bytes,
                           const unsigned long long* name, Call&& call) {
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  if (native.reserve(bytes)) {
    result = call();
    if (result == CUDA_SUCCESS) {
      native.hold(kind, *name, bytes);
    } else {
      native.cancel(bytes);
    }
  }
  return said_if_out_of_memory(result, bytes);
}

// Of whichever device, current or not.
template <typename Call>
CUresult free_counted(NativeMemory::Kind kind, uint64_t name, Call&& call) {
  uint64_t bytes = 0;
  Session* holder = find_session([&](Session& each) {
    bytes = each.native ? each.native_memory.let_go(kind, name) : 0;
    return bytes != 0;
  });
  const CUresult result = call();
  if (result != CUDA_SUCCESS && holder != nullptr)
    holder->native_memory.take_back(kind, name, bytes);
  return result;
}

// An allocation of `bytes` (0: not known) that we do not serve; `out`: where the call puts the
// address.
template <typename Call>
CUresult by_driver(uint64_t bytes, const CUdeviceptr* out, const void* caller, Call&& call) {
  if (NativeMemory* native = native_memory(); native != nullptr && out != nullptr) [[unlikely]]
    return by_driver_counted(*native, NativeMemory::Kind::kAddress, bytes, out, call);
  return served_by_driver(with_device_memory(bytes, call), caller);
}

// A free of what we did not serve.
void forget_foreign_tables(CUdeviceptr address);
template <typename Call>
CUresult free_by_driver(CUdeviceptr address, Call&& call) {
  forget_foreign_tables(address);
  return free_counted(NativeMemory::Kind::kAddress, address, call);
}

}  // namespace offload
