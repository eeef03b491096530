// SPDX-License-Identifier: Apache-2.0
// Device memory that comes whole (cuMemAlloc), and host memory that the device may use.
#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/driver/peers.h"
#include "tests/simgpu/exec/costs.h"
#include "tests/simgpu/exec/engine.h"
#include "tests/simgpu/exec/graph_memory.h"
#include "tests/simgpu/memory/address_space.h"
#include "tests/simgpu/memory/heap.h"
#include "tests/simgpu/memory/host_blocks.h"
#include "tests/simgpu/memory/machine.h"
#include "tests/simgpu/memory/pool.h"

using simgpu::address_space;
using simgpu::Call;
using simgpu::engine;
using simgpu::Mapping;
using simgpu::MemoryKind;
using simgpu::Needs;

namespace {

constexpr size_t kPitch = 512;
constexpr unsigned kHostAllocFlags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
constexpr unsigned kHostRegisterFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                        CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;

// Calls that give memory back wait for the device, as the real ones do.
void wait_for_device(Call& call, int device, const char* name) {
  engine().synchronize(call.lock, engine().all_work_of_device(device), name);
}

Mapping* find_block(CUdeviceptr address, MemoryKind kind) {
  Mapping* mapping = address_space().find(address);
  return mapping && mapping->begin == address && mapping->kind == kind ? mapping : nullptr;
}

}  // namespace

SIMGPU_API cuMemGetInfo_v2(size_t* free, size_t* total) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  const simgpu::PhysicalMemory& memory = simgpu::device_memory(call.context->device);
  if (free != nullptr) *free = memory.capacity() - memory.used();
  if (total != nullptr) *total = memory.capacity();
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  Call call(Needs::kContext, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const int device = call.context->device;
  CUresult result = simgpu::heap::allocate(address, bytes, &call.context->owner(), device);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && simgpu::pools::have_unused(device)) {
    // What pools hold without need is given up first.
    wait_for_device(call, device, "cuMemAlloc");
    simgpu::pools::trim_all(device);
    result = simgpu::heap::allocate(address, bytes, &call.context->owner(), device);
  }
  if (result == CUDA_SUCCESS) simgpu::peers::let_in(*address_space().find(*address));
  return result;
}

SIMGPU_API cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                              unsigned int element) {
  const simgpu::ApiName api_name(__func__);
  if (pitch == nullptr || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
  *pitch = (width + kPitch - 1) / kPitch * kPitch;
  return cuMemAlloc_v2(address, *pitch * height);
}

SIMGPU_API cuMemFree_v2(CUdeviceptr address) {
  Call call(Needs::kContext, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (address == 0) return CUDA_SUCCESS;
  Mapping* mapping = find_block(address, MemoryKind::kHeap);
  if (mapping == nullptr) mapping = find_block(address, MemoryKind::kPool);
  if (mapping == nullptr) mapping = find_block(address, MemoryKind::kGraph);
  if (mapping == nullptr) mapping = find_block(address, MemoryKind::kManaged);
  if (mapping == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // Of memory from a pool the reference says that there is no implicit synchronisation: the caller
  // has made sure that nobody uses it any more.
  for (int device = 0; mapping->kind != MemoryKind::kPool && device < simgpu::options().devices;
       ++device) {
    if (mapping->device < 0 || mapping->device == device)
      wait_for_device(call, device, "cuMemFree");
  }
  mapping = address_space().find(address);
  if (mapping == nullptr || mapping->begin != address) return CUDA_ERROR_INVALID_VALUE;
  if (mapping->kind == MemoryKind::kHeap) {
    simgpu::heap::free(mapping);
  } else if (mapping->kind == MemoryKind::kManaged) {
    simgpu::host_blocks::free_any(mapping);
  } else if (mapping->kind == MemoryKind::kGraph) {
    const auto memory = simgpu::graph_memory::find(address);
    if (!memory->outstanding) return CUDA_ERROR_INVALID_VALUE;
    simgpu::graph_memory::set_outstanding(*memory, false);
    mapping->live = false;
  } else {
    const CUresult refused = simgpu::pools::free_now(mapping);
    if (refused != CUDA_SUCCESS) return refused;
    simgpu::pools::after_synchronisation();
  }
  return call.context->sticky;
}

SIMGPU_API cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  const Mapping* mapping = address_space().find(address);
  if (mapping == nullptr) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = mapping->begin;
  if (bytes != nullptr) *bytes = mapping->bytes;
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  Call call(Needs::kContext, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (pointer == nullptr || (flags & ~kHostAllocFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  engine().wait_as_pinning_does(call.lock, "cuMemHostAlloc");
  const CUresult result =
      simgpu::host_blocks::allocate(pointer, bytes, flags, &call.context->owner());
  if (result == CUDA_SUCCESS) engine().spend_keeping_driver(simgpu::pinning_cost_ns(bytes));
  return result;
}

SIMGPU_API cuMemAllocHost_v2(void** pointer, size_t bytes) {
  const simgpu::ApiName api_name(__func__);
  return cuMemHostAlloc(pointer, bytes, 0);
}

SIMGPU_API cuMemFreeHost(void* pointer) {
  Call call(Needs::kContext, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (pointer == nullptr) return CUDA_SUCCESS;
  const auto address = reinterpret_cast<CUdeviceptr>(pointer);
  if (find_block(address, MemoryKind::kPinned) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (int device = 0; device < simgpu::options().devices; ++device) {
    wait_for_device(call, device, "cuMemFreeHost");
  }
  return simgpu::host_blocks::free(pointer);
}

SIMGPU_API cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned int flags) {
  Call call(Needs::kContext, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  if ((flags & ~kHostRegisterFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  engine().wait_as_pinning_does(call.lock, "cuMemHostRegister");
  const CUresult result =
      simgpu::host_blocks::add_registered(pointer, bytes, flags, &call.context->owner());
  if (result == CUDA_SUCCESS) engine().spend_keeping_driver(simgpu::pinning_cost_ns(bytes));
  return result;
}

SIMGPU_API cuMemHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  const simgpu::ApiName api_name(__func__);
  return cuMemHostRegister_v2(pointer, bytes, flags);
}

SIMGPU_API cuMemHostUnregister(void* pointer) {
  Call call(Needs::kContext, simgpu::Capturing::kUnsafe);
  if (call.error != CUDA_SUCCESS) return call.error;
  return simgpu::host_blocks::remove_registered(pointer);
}

SIMGPU_API cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* pointer, unsigned int flags) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  const auto wanted = reinterpret_cast<CUdeviceptr>(pointer);
  const Mapping* mapping = address_space().find(wanted);
  if (address == nullptr || flags != 0 || mapping == nullptr ||
      (mapping->kind != MemoryKind::kPinned && mapping->kind != MemoryKind::kRegistered)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *address = wanted;
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemHostGetFlags(unsigned int* flags, void* pointer) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  const Mapping* mapping = address_space().find(reinterpret_cast<uintptr_t>(pointer));
  if (flags == nullptr || mapping == nullptr || mapping->kind != MemoryKind::kPinned) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // With unified addressing everything is mapped for the device.
  *flags = mapping->host_flags | CU_MEMHOSTALLOC_DEVICEMAP;
  return CUDA_SUCCESS;
}
