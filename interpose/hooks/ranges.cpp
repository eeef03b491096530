// SPDX-License-Identifier: Apache-2.0
#include "interpose/hooks/ranges.h"

#include <atomic>
#include <cstdint>
#include <iterator>

#include "interpose/driver/own_call.h"
#include "interpose/rules.h"

namespace offload {
namespace {

// The driver's allocations are multiples of this, and copies within the last one are fine there.
constexpr uint64_t kAllocationUnit = 512;

// Copies between memories of all kinds come through one entry, so the kind is asked for. Unknown to
// the driver: plain host memory.
bool host_can_read(const void* at) {
  const auto address = reinterpret_cast<CUdeviceptr>(at);
  unsigned type = 0;
  void* host = nullptr;
  const RelaxedCapture relaxed(captures_watched());
  if (real<Entry::cuPointerGetAttribute>()(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) !=
      CUDA_SUCCESS)
    return true;
  return type == CU_MEMORYTYPE_HOST &&
         real<Entry::cuPointerGetAttribute>()(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, address) ==
             CUDA_SUCCESS;
}

bool known_to_driver(CUdeviceptr address) {
  unsigned type = 0;
  const RelaxedCapture relaxed(captures_watched());
  return real<Entry::cuPointerGetAttribute>()(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) ==
         CUDA_SUCCESS;
}

// Known from the first copy on that can have to do with it.
bool several_devices() {
  static constinit std::atomic<int> known{0};
  int count = known.load(std::memory_order_relaxed);
  if (count != 0) [[likely]]
    return count > 1;
  if (session() == nullptr || real<Entry::cuDeviceGetCount>()(&count) != CUDA_SUCCESS) return false;
  known.store(count, std::memory_order_relaxed);
  return count > 1;
}

struct Residence {
  enum class Kind : uint8_t { kHost, kOneDevice, kAllDevices } kind;
  CUcontext context = nullptr;
  int device = -1;
};

Residence residence(const Session* owner, CUdeviceptr at) {
  if (owner != nullptr)
    return {Residence::Kind::kOneDevice, owner->device.context, owner->device.device};
  unsigned type = 0;
  unsigned managed = 0;
  Residence found{Residence::Kind::kHost};
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* values[] = {&type, &managed, &found.context, &found.device};
  const RelaxedCapture relaxed(captures_watched());
  const CUresult answer =
      real<Entry::cuPointerGetAttributes>()(std::size(which), which, values, at);
  if (managed != 0) return {Residence::Kind::kAllDevices};
  if (answer != CUDA_SUCCESS || type != CU_MEMORYTYPE_DEVICE) return {Residence::Kind::kHost};
  // Of memory that is mapped by hand no context is known.
  found.kind =
      found.context != nullptr ? Residence::Kind::kOneDevice : Residence::Kind::kAllDevices;
  return found;
}

CUcontext context_of(CUstream stream) {
  CUcontext context = nullptr;
  const bool special =
      stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  if (special || real<Entry::cuStreamGetCtx>()(stream, &context) != CUDA_SUCCESS)
    return current_context();
  return context;
}

CUcontext elsewhere(const Session& owner, CUstream stream) {
  return context_of(stream) != owner.device.context ? owner.device.context : nullptr;
}

bool copies_are_told() {
  return several_devices() && obeys(Rule::kCopyTellsContexts);
}

}  // namespace

CUcontext context_elsewhere(CUdeviceptr at, CUstream stream) {
  if (!copies_are_told()) [[likely]]
    return nullptr;
  const Session* owner = owner_of(at);
  return owner != nullptr ? elsewhere(*owner, stream) : nullptr;
}

bool lie_apart(CUdeviceptr to, CUdeviceptr from, CUstream stream, Ends* ends) {
  if (!copies_are_told()) [[likely]]
    return false;
  const Session* target = owner_of(to);
  const Session* source = owner_of(from);
  if (target == source) return false;
  using Kind = Residence::Kind;
  const Residence there = residence(target, to);
  const Residence here = residence(source, from);
  if (there.kind == Kind::kOneDevice && here.kind == Kind::kOneDevice) {
    *ends = {there.context, here.context};
    return there.device != here.device;
  }
  if (there.kind == Kind::kHost) *ends = {nullptr, elsewhere(*source, stream)};
  if (here.kind == Kind::kHost) *ends = {elsewhere(*target, stream), nullptr};
  return ends->to != nullptr || ends->from != nullptr;
}

CUresult name_range(Operation& operation, CUdeviceptr at, size_t bytes) {
  Session* owner = bytes == 0 ? nullptr : operation.owner(at);
  if (owner == nullptr) return CUDA_SUCCESS;
  AllocationInfo allocation;
  if (!owner->engine.describe(at, &allocation)) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t behind = at - allocation.base;
  const uint64_t whole =
      (allocation.bytes + kAllocationUnit - 1) / kAllocationUnit * kAllocationUnit;
  if (bytes > whole - behind) return CUDA_ERROR_INVALID_VALUE;
  if (obeys(Rule::kRangesAreNamed)) operation.name(at);
  return CUDA_SUCCESS;
}

void watch_for_table(Operation& operation, CUdeviceptr to, const void* from, size_t bytes) {
  if (bytes < sizeof(void*) || bytes > Tables::kLargest || !operation.may_name()) return;
  if (operation.owner(reinterpret_cast<CUdeviceptr>(from)) == nullptr && !host_can_read(from))
    return;
  if (operation.owner(to) != nullptr) {
    if (obeys(Rule::kTablesAreFollowed)) operation.copies_table(to, from, bytes);
  } else if (obeys(Rule::kForeignTablesAreFollowed) &&
             known_to_driver(to)) {  // else no kernel reads it
    operation.copies_foreign_table({to, from, bytes});
  }
}

}  // namespace offload
