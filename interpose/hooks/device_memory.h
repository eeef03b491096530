// SPDX-License-Identifier: Apache-2.0
#pragma once
// The driver takes device memory for itself, too: for code that is loaded at its first launch, for
// stacks, streams, other libraries. Where it finds none because liboffload holds it all, some is
// given back and the call is made again.

#include "interpose/life/sessions.h"
#include "interpose/rules.h"

namespace offload {

// Gives some of what we hold on the current context's device (or on `device`) back to the driver,
// twice as much at each attempt, from 0 on. What was given; 0: there is nothing more to give, or it
// would not help. Then whether it helped: what did not is ours again.
inline constexpr CUdevice kCurrentDevice = -1;
uint64_t give_way(uint64_t asked_bytes, int attempt, CUdevice device = kCurrentDevice);
void gave_way(uint64_t bytes, bool helped, CUdevice device = kCurrentDevice);

// `asked_bytes`: what is known to be needed, or 0. Returns what the last call answered: the
// driver's own out-of-memory if nothing helped.
template <typename Call>
inline CUresult with_device_memory(uint64_t asked_bytes, Call&& call,
                                   CUdevice device = kCurrentDevice) {
  CUresult result = call();
  if (result != CUDA_ERROR_OUT_OF_MEMORY || !obeys(Rule::kDriverGetsMemory)) [[likely]]
    return result;
  uint64_t given = 0;
  for (int attempt = 0; result == CUDA_ERROR_OUT_OF_MEMORY; ++attempt) {
    const uint64_t more = give_way(asked_bytes, attempt, device);
    if (more == 0) break;
    given += more;
    result = call();
  }
  if (given != 0) gave_way(given, result == CUDA_SUCCESS, device);
  return result;
}

}  // namespace offload
