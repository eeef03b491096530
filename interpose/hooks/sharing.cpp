// SPDX-License-Identifier: Apache-2.0
// Memory that others get a hold of: handles, exports, registrations.

#include "interpose/hooks/define.h"
#include "interpose/hooks/keep.h"
#include "interpose/hooks/pointer_attributes.h"
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
CUresult mem_get_handle_for_address_range(void* handle, CUdeviceptr address, size_t bytes,
                                          CUmemRangeHandleType type, unsigned long long flags) {
  if (const CUresult refused = keep_for_others(address); refused != CUDA_SUCCESS) return refused;
  const CUresult result = real<E>()(handle, address, bytes, type, flags);
  if (result != CUDA_SUCCESS && owner_of(address) != nullptr) {
    log_info(
        "the program wants to share a buffer with another device (cuMemGetHandleForAddressRange), "
        "which the driver refuses for memory that liboffload hands out");
  }
  return result;
}

// Our memory is made of pieces, each of which is an allocation for the driver.
template <Entry E>
CUresult pointer_set_attribute(const void* value, CUpointer_attribute attribute,
                               CUdeviceptr address) {
  if (const CUresult refused = keep_for_others(address); refused != CUDA_SUCCESS) return refused;
  const CUresult result = real<E>()(value, attribute, address);
  Session* owner = owner_of(address);
  AllocationInfo allocation;
  if (result != CUDA_SUCCESS || owner == nullptr || !owner->engine.describe(address, &allocation))
    return result;
  const uint64_t piece = owner->device.granularity;
  for (CUdeviceptr at = allocation.base / piece * piece; at < allocation.base + allocation.bytes;
       at += piece) {
    real<E>()(value, attribute, at);
  }
  if (attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
    set_synchronous(owner->device, allocation, *static_cast<const unsigned char*>(value) != 0);
  return CUDA_SUCCESS;
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
