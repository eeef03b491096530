// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress: the driver answers first, and its answer is replaced. Asking for
// cuGetProcAddress itself is answered by the same rule with the wrapper, or the runtime would
// escape after one call.

#include "interpose/doors/substitute.h"
#include "interpose/driver/table.h"
#include "interpose/hooks/define.h"

namespace offload {

namespace {
void replace(const char* base, void** answer, int version, cuuint64_t flags) {
  if (base == nullptr || answer == nullptr || *answer == nullptr) return;
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  *answer = substitute_base(base, version, per_thread, *answer);
}
}  // namespace

template <Entry E>
CUresult get_proc_address_v1(const char* symbol, void** pfn, int version, cuuint64_t flags) {
  const CUresult result = real<E>()(symbol, pfn, version, flags);
  if (result == CUDA_SUCCESS) replace(symbol, pfn, version, flags);
  return result;
}

template <Entry E>
CUresult get_proc_address(const char* symbol, void** pfn, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* status) {
  const CUresult result = real<E>()(symbol, pfn, version, flags, status);
  if (result == CUDA_SUCCESS) replace(symbol, pfn, version, flags);
  return result;
}

}  // namespace offload

#define FAMILY_proc_address DEFINE_HOOK
#include "interpose/hooks/families.h"
