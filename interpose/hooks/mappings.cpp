// SPDX-License-Identifier: Apache-2.0
// Virtual memory of the program's own. Ours is made of the same, but the program has it from
// cuMemAlloc, so it is told what the driver says of such memory; and of a handle that it has
// released, which may be one of ours by now.

#include "interpose/hooks/define.h"
#include "interpose/hooks/device_memory.h"
#include "interpose/hooks/serve.h"

namespace offload {
namespace {

constexpr CUresult kNoMapping = CUDA_ERROR_INVALID_VALUE;

bool are_ours(CUdeviceptr at, size_t bytes) {
  return owner_of(at) != nullptr || (bytes != 0 && owner_of(at + bytes - 1) != nullptr);
}

bool is_ours(CUmemGenericAllocationHandle handle) {
  return find_session([handle](Session& each) { return each.port.has_made(handle); }) != nullptr;
}

}  // namespace

template <Entry E>
CUresult mem_map(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                 unsigned long long flags) {
  if (are_ours(at, bytes) || is_ours(handle)) return kNoMapping;
  return with_device_memory(0, [=] { return real<E>()(at, bytes, offset, handle, flags); });
}

template <Entry E>
CUresult mem_unmap(CUdeviceptr at, size_t bytes) {
  return are_ours(at, bytes) ? kNoMapping : real<E>()(at, bytes);
}

template <Entry E>
CUresult mem_set_access(CUdeviceptr at, size_t bytes, const CUmemAccessDesc* given, size_t count) {
  if (are_ours(at, bytes)) return kNoMapping;
  return with_device_memory(0, [=] { return real<E>()(at, bytes, given, count); });
}

template <Entry E>
CUresult mem_address_free(CUdeviceptr at, size_t bytes) {
  return are_ours(at, bytes) ? kNoMapping : real<E>()(at, bytes);
}

template <Entry E>
CUresult mem_release(CUmemGenericAllocationHandle handle) {
  if (is_ours(handle)) return kNoMapping;
  return free_counted(NativeMemory::Kind::kHandle, handle, [&] { return real<E>()(handle); });
}

template <Entry E>
CUresult mem_export(void* shareable, CUmemGenericAllocationHandle handle,
                    CUmemAllocationHandleType type, unsigned long long flags) {
  return is_ours(handle) ? kNoMapping : real<E>()(shareable, handle, type, flags);
}

template <Entry E>
CUresult mem_get_properties(CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle) {
  return is_ours(handle) ? kNoMapping : real<E>()(properties, handle);
}

template <Entry E>
CUresult multicast_bind_mem(CUmemGenericAllocationHandle multicast, size_t multicast_offset,
                            CUmemGenericAllocationHandle memory, size_t offset, size_t bytes,
                            unsigned long long flags) {
  if (is_ours(memory)) return kNoMapping;
  return real<E>()(multicast, multicast_offset, memory, offset, bytes, flags);
}

// Memory from cuMemAlloc has none: a library chooses by that how it shares it.
template <Entry E>
CUresult mem_retain_allocation_handle(CUmemGenericAllocationHandle* handle, void* address) {
  if (owner_of(reinterpret_cast<CUdeviceptr>(address)) != nullptr) return kNoMapping;
  return real<E>()(handle, address);
}

}  // namespace offload

#define FAMILY_mappings DEFINE_HOOK
#include "interpose/hooks/families.h"
