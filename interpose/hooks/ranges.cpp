// SPDX-License-Identifier: Apache-2.0
#include "interpose/hooks/ranges.h"

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

}  // namespace

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
