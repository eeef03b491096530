// SPDX-License-Identifier: Apache-2.0
#pragma once
// The driver takes device memory for itself, too: for code that is loaded at its first launch, for
// stacks, streams, other libraries. Where it finds none because liboffload holds it all, some is
// given back and the call is made again.

#include "interpose/life/session.h"

namespace offload {

// Gives some of the session's memory back to the driver, more at each attempt, beginning with 0.
// False: there is nothing to give, it would not help, or it has been tried often enough.
bool give_way(Session& session, uint64_t asked_bytes, int attempt);

// `asked_bytes`: what is known to be needed, or 0. Returns what the last call answered: the
// driver's own out-of-memory if nothing helped.
template <typename Call>
inline CUresult with_device_memory(Session* active, uint64_t asked_bytes, Call&& call) {
  CUresult result = call();
  if (result != CUDA_ERROR_OUT_OF_MEMORY || active == nullptr) [[likely]]
    return result;
  for (int attempt = 0;
       result == CUDA_ERROR_OUT_OF_MEMORY && give_way(*active, asked_bytes, attempt); ++attempt) {
    result = call();
  }
  return result;
}

}  // namespace offload
