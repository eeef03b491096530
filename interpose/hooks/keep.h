// SPDX-License-Identifier: Apache-2.0
#pragma once
// For entries that take an address to where its use cannot be seen.

#include "interpose/hooks/operation.h"
#include "interpose/rules.h"

namespace offload {

// Brings the buffer around `address` home, for good. Not CUDA_SUCCESS: answer with that. An address
// that is not ours is fine.
inline CUresult keep(CUdeviceptr address) {
  Session* owner = owner_of(address);
  if (owner == nullptr || !obeys(Rule::kKeptStays)) return CUDA_SUCCESS;
  const Status status = owner->engine.keep(address, owner->pins());
  return status == Status::kNotOurs ? CUDA_SUCCESS : code_of(status);
}
inline CUresult keep(const void* address) {
  return keep(reinterpret_cast<CUdeviceptr>(address));
}

}  // namespace offload
