// SPDX-License-Identifier: Apache-2.0
// Calls for which the driver may need device memory of its own, and which do nothing else to ours.

#include "interpose/hooks/define.h"
#include "interpose/hooks/serve.h"
#include "interpose/life/pytorch.h"
#include "profiler/base/log.h"
#include "profiler/base/units.h"

namespace offload {

bool give_way(uint64_t asked_bytes, int attempt, CUdevice device) {
  constexpr uint64_t kFirstGranules = 16;
  constexpr int kAttempts = 5;  // from 32 MiB to 1 GiB in all, at 2 MiB a granule
  if (attempt >= kAttempts ||
      (device == kCurrentDevice && real<Entry::cuCtxGetDevice>()(&device) != CUDA_SUCCESS))
    return false;
  Session* holder = session_on(device);
  if (holder == nullptr || asked_bytes > holder->device.total_bytes) return false;
  const uint64_t bytes = asked_bytes + ((kFirstGranules * holder->device.granularity) << attempt);
  if (!holder->engine.give_way(bytes)) return false;
  log_info("the driver has no device memory left for itself: it gets %s of what liboffload held",
           format_size(bytes).c_str());
  return true;
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
