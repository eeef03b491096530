// SPDX-License-Identifier: Apache-2.0
// cuMemAlloc, cuMemAllocPitch, cuMemFree.

#include "interpose/hooks/define.h"
#include "interpose/hooks/operation.h"
#include "interpose/hooks/serve.h"

namespace offload {

namespace {
constexpr size_t kPitchAlignment = 512;
}  // namespace

template <Entry E>
CUresult mem_alloc(CUdeviceptr* out, size_t bytes) {
  const void* caller = __builtin_return_address(0);
  Session* active = session_that_serves_now(caller);
  if (active == nullptr || out == nullptr || bytes == 0)
    return by_driver(bytes, out, caller, [&] { return real<E>()(out, bytes); });
  return serve(*active, bytes, kNoStream, out);
}

template <Entry E>
CUresult mem_alloc_pitch(CUdeviceptr* out, size_t* pitch, size_t width_bytes, size_t height,
                         unsigned element_bytes) {
  const void* caller = __builtin_return_address(0);
  Session* active = session_that_serves_now(caller);
  const bool good = out != nullptr && pitch != nullptr && width_bytes != 0 && height != 0 &&
                    (element_bytes == 4 || element_bytes == 8 || element_bytes == 16) &&
                    width_bytes < SIZE_MAX - kPitchAlignment;
  if (active == nullptr || !good)
    return by_driver(width_bytes * height, out, caller,
                     [&] { return real<E>()(out, pitch, width_bytes, height, element_bytes); });
  const size_t row = (width_bytes + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  size_t bytes = 0;
  if (__builtin_mul_overflow(row, height, &bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = serve(*active, bytes, kNoStream, out);
  if (result == CUDA_SUCCESS) *pitch = row;
  return result;
}

template <Entry E>
CUresult mem_free(CUdeviceptr address) {
  if (session() == nullptr) return answer_to_free(real<E>()(address), address);
  Session* owner = owner_of(address);
  return owner == nullptr ? free_by_driver(address, [&] { return real<E>()(address); })
                          : code_of(owner->engine.free(address, &owner->pins()));
}

}  // namespace offload

#define FAMILY_allocation DEFINE_HOOK
#include "interpose/hooks/families.h"
