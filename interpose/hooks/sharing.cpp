// SPDX-License-Identifier: Apache-2.0
// Memory that others get a hold of: handles, exports, registrations.

#include "interpose/hooks/define.h"
#include "interpose/hooks/keep.h"
#include "interpose/life/pytorch.h"
#include "profiler/base/log.h"

namespace offload {
namespace {

CUresult keep_for_others(CUdeviceptr address) {
  if (owner_of(address) != nullptr) statistics().passed_through(PassThrough::shared_with_others);
  return keep(address);
}

}  // namespace

template <Entry E>
CUresult mem_retain_allocation_handle(CUmemGenericAllocationHandle* handle, void* address) {
  if (const CUresult refused = keep_for_others(reinterpret_cast<CUdeviceptr>(address));
      refused != CUDA_SUCCESS) {
    return refused;
  }
  return real<E>()(handle, address);
}

template <Entry E>
CUresult mem_get_handle_for_address_range(void* handle, CUdeviceptr address, size_t bytes,
                                          CUmemRangeHandleType type, unsigned long long flags) {
  if (const CUresult refused = keep_for_others(address); refused != CUDA_SUCCESS) return refused;
  return real<E>()(handle, address, bytes, type, flags);
}

template <Entry E>
CUresult pointer_set_attribute(const void* value, CUpointer_attribute attribute,
                               CUdeviceptr address) {
  if (const CUresult refused = keep_for_others(address); refused != CUDA_SUCCESS) return refused;
  return real<E>()(value, attribute, address);
}

template <Entry E>
CUresult multicast_bind_addr(CUmemGenericAllocationHandle multicast, size_t offset,
                             CUdeviceptr address, size_t bytes, unsigned long long flags) {
  if (const CUresult refused = keep_for_others(address); refused != CUDA_SUCCESS) return refused;
  return real<E>()(multicast, offset, address, bytes, flags);
}

template <Entry E>
CUresult mem_get_access(unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr address) {
  if (const CUresult refused = keep(address); refused != CUDA_SUCCESS) return refused;
  return real<E>()(flags, location, address);
}

// Memory like ours cannot be shared this way: the driver refuses it, and the user should know why.
template <Entry E>
CUresult ipc_get_mem_handle(CUipcMemHandle* handle, CUdeviceptr address) {
  const CUresult result = real<E>()(handle, address);
  if (owner_of(address) != nullptr) {
    statistics().passed_through(PassThrough::shared_with_others);
    log_warn(
        "the program wants to share a buffer with another process (cuIpcGetMemHandle), which the "
        "driver refuses for memory that liboffload hands out; run with %s=native if it depends on "
        "that",
        is_pytorch() ? "OFFLOAD_PYTORCH_ALLOC" : "OFFLOAD_IPC");
  }
  return result;
}

}  // namespace offload

#define FAMILY_sharing DEFINE_HOOK
#include "interpose/hooks/families.h"
