// SPDX-License-Identifier: Apache-2.0
// Calls for which the driver may need device memory of its own, and which do nothing else to ours.

#include "interpose/hooks/define.h"
#include "interpose/hooks/serve.h"
#include "interpose/life/pytorch.h"
#include "profiler/base/log.h"
#include "profiler/base/units.h"

namespace offload {

uint64_t give_way(uint64_t asked_bytes, int attempt, CUdevice device) {
  constexpr uint64_t kFirstGranules = 16;
  constexpr int kAttempts = 24;  // until there is nothing more, that is
  if (attempt >= kAttempts ||
      (device == kCurrentDevice && real<Entry::cuCtxGetDevice>()(&device) != CUDA_SUCCESS))
    return 0;
  Session* holder = session_on(device);
  if (holder == nullptr || asked_bytes > holder->device.total_bytes) return 0;
  const uint64_t bytes = asked_bytes + ((kFirstGranules * holder->device.granularity) << attempt);
  return holder->engine.give_way(bytes);
}

void gave_way(uint64_t bytes, bool helped, CUdevice device) {
  if (device == kCurrentDevice && real<Entry::cuCtxGetDevice>()(&device) != CUDA_SUCCESS) return;
  Session* holder = session_on(device);
  if (holder == nullptr) return;
  holder->engine.gave_way(bytes, helped);
  log_info(
      helped ? "the driver had no device memory left for itself: it got %s of what liboffload held"
             : "the driver has no device memory left for itself, and %s of what liboffload held "
               "did not help",
      format_size(bytes).c_str());
}

template <Entry E, typename... Arguments>
CUresult take_device_memory(Arguments... arguments) {
  return with_device_memory(0, [&] { return real<E>()(arguments...); });
}

// PyTorch's expandable segments are made of such pieces, and may be all that it ever allocates.
template <Entry E>
CUresult mem_create(CUmemGenericAllocationHandle* handle, size_t bytes,
                    const CUmemAllocationProp* properties, unsigned long long flags) {
  if (is_native_pytorch()) session_for_allocation();
  const auto call = [&] { return real<E>()(handle, bytes, properties, flags); };
  const bool on_device = handle != nullptr && properties != nullptr &&
                         properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  NativeMemory* native = on_device ? native_memory_on(properties->location.id) : nullptr;
  if (native == nullptr)
    return with_device_memory(bytes, call, on_device ? properties->location.id : kCurrentDevice);
  return by_driver_counted(*native, NativeMemory::Kind::kHandle, bytes, handle, call);
}

// On whichever device, current or not.
template <Entry E>
CUresult primary_ctx_retain(CUcontext* context, CUdevice device) {
  return with_device_memory(
      0, [=] { return real<E>()(context, device); }, device);
}

}  // namespace offload

#define FAMILY_driver_memory DEFINE_HOOK
#include "interpose/hooks/families.h"
