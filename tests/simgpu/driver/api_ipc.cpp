// SPDX-License-Identifier: Apache-2.0
// What crosses the border of the process: legacy IPC handles of memory and events, shareable
// handles of VMM memory, and descriptors of address ranges.
#include <unistd.h>

#include <cstring>

#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/objects.h"
#include "tests/simgpu/memory/address_space.h"
#include "tests/simgpu/memory/exported.h"
#include "tests/simgpu/memory/vmm.h"

using simgpu::address_space;
using simgpu::Call;
using simgpu::Capturing;
using simgpu::Mapping;
using simgpu::MemoryKind;
using simgpu::Needs;
namespace exported = simgpu::exported;

namespace {

struct EventDescription {
  uint64_t magic;
  int32_t process;
  int32_t fd;
};
constexpr uint64_t kEventMagic = 0x73696d6770753032;

static_assert(sizeof(exported::Description) <= sizeof(CUipcMemHandle));

}  // namespace

// Only what cuMemAlloc gave; a pointer into it stands for the whole.
SIMGPU_API cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  const Mapping* mapping = address_space().find(address);
  if (handle == nullptr || mapping == nullptr || mapping->kind != MemoryKind::kHeap) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const exported::Description made =
      exported::describe(*mapping->physical, mapping->device, mapping->offset, mapping->bytes);
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &made, sizeof made);
  return CUDA_SUCCESS;
}

SIMGPU_API cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned int flags) {
  Call call(Needs::kContext, Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  exported::Description made;
  std::memcpy(static_cast<void*>(&made), &handle, sizeof made);
  if (address == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ||
      !exported::is_valid(made)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // A process cannot open its own.
  if (exported::is_own(made)) return CUDA_ERROR_INVALID_CONTEXT;
  return exported::open_ipc(made, call.context->device, address);
}
SIMGPU_API cuIpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle, unsigned int flags) {
  const simgpu::ApiName api_name(__func__);
  return cuIpcOpenMemHandle_v2(address, handle, flags);
}

SIMGPU_API cuIpcCloseMemHandle(CUdeviceptr address) {
  Call call(Needs::kContext, Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  return exported::close_ipc(address);
}

SIMGPU_API cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  const simgpu::EventHandle* entry = simgpu::event_handles().find(event);
  if (entry == nullptr || entry->shared == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const EventDescription made = {kEventMagic, getpid(), entry->shared->fd()};
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &made, sizeof made);
  return CUDA_SUCCESS;
}

SIMGPU_API cuIpcOpenEventHandle(CUevent* event, CUipcEventHandle handle) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  EventDescription made = {};
  std::memcpy(&made, &handle, sizeof made);
  if (event == nullptr || made.magic != kEventMagic) return CUDA_ERROR_INVALID_VALUE;
  if (made.process == getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  auto shared = simgpu::SharedEvent::open(made.process, made.fd);
  if (shared == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  simgpu::EventHandle* entry = simgpu::event_handles().create();
  entry->context = &call.context->owner();
  entry->flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
  entry->shared = std::move(shared);
  *event = reinterpret_cast<CUevent>(entry);
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                        CUmemAllocationHandleType type, unsigned long long flags) {
  Call call(Needs::kDriver, Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (shareable == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  return simgpu::vmm::export_to(static_cast<int*>(shareable), handle);
}

SIMGPU_API cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                          CUmemAllocationHandleType type) {
  Call call(Needs::kDriver, Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  // The descriptor itself, in a pointer's clothes.
  return simgpu::vmm::import_from(handle, static_cast<int>(reinterpret_cast<intptr_t>(shareable)));
}

// For network cards: here a descriptor of the device's memory file. The range must be mapped whole
// and lie on one device.
SIMGPU_API cuMemGetHandleForAddressRange(void* handle, CUdeviceptr address, size_t bytes,
                                         CUmemRangeHandleType type, unsigned long long flags) {
  constexpr size_t kPage = 4096;
  Call call(Needs::kDriver, Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (handle == nullptr || bytes == 0 || address % kPage != 0 || bytes % kPage != 0 ||
      type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || (flags & ~1ULL) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Mapping* first = address_space().find(address);
  if (first == nullptr || first->device < 0 || !address_space().is_one_range(address, bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (uintptr_t at = address; at < address + bytes; at = address_space().find(at)->end()) {
    const Mapping* here = address_space().find(at);
    const bool capable =
        here->kind == MemoryKind::kHeap ||
        (here->handle != nullptr && here->handle->properties.allocFlags.gpuDirectRDMACapable != 0);
    if (!capable || here->device != first->device) return CUDA_ERROR_INVALID_VALUE;
  }
  const int fd = dup(first->physical->fd());
  if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(handle) = fd;
  return CUDA_SUCCESS;
}
