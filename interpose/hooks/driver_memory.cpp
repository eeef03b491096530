// SPDX-License-Identifier: Apache-2.0
// Calls for which the driver may need device memory of its own, and which do nothing else to ours.

#include "interpose/hooks/define.h"
#include "interpose/hooks/serve.h"
#include "interpose/life/pytorch.h"
#include "profiler/base/log.h"
#include "profiler/base/units.h"

namespace offload {

bool give_way(Session& session, uint64_t asked_bytes, int attempt) {
  constexpr uint64_t kFirstGranules = 16;
  constexpr int kAttempts = 5;  // from 32 MiB to 1 GiB in all, at 2 MiB a granule
  CUdevice device = -1;
  if (attempt >= kAttempts || asked_bytes > session.device.total_bytes ||
      real<Entry::cuCtxGetDevice>()(&device) != CUDA_SUCCESS || device != session.device.device) {
    return false;
  }
  const uint64_t bytes = asked_bytes + ((kFirstGranules * session.device.granularity) << attempt);
  if (!session.engine.give_way(bytes)) return false;
  log_info("the driver has no device memory left for itself: it gets %s of what liboffload held",
           format_size(bytes).c_str());
  return true;
}

template <Entry E, typename... Arguments>
CUresult take_device_memory(Arguments... arguments) {
  return with_device_memory(session(), 0, [&] { return real<E>()(arguments...); });
}

// PyTorch's expandable segments are made of such pieces, and may be all that it ever allocates.
template <Entry E>
CUresult mem_create(CUmemGenericAllocationHandle* handle, size_t bytes,
                    const CUmemAllocationProp* properties, unsigned long long flags) {
  if (session() == nullptr && is_native_pytorch()) session_for_allocation();
  const auto call = [&] { return real<E>()(handle, bytes, properties, flags); };
  NativeMemory* native = native_memory();
  if (native == nullptr || handle == nullptr || properties == nullptr ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      properties->location.id != session()->device.device)
    return with_device_memory(session(), bytes, call);
  return by_driver_counted(*native, NativeMemory::Kind::kHandle, bytes, handle, call);
}

template <Entry E>
CUresult mem_release(CUmemGenericAllocationHandle handle) {
  NativeMemory* native = native_memory();
  const auto call = [&] { return real<E>()(handle); };
  return native == nullptr ? call()
                           : free_counted(*native, NativeMemory::Kind::kHandle, handle, call);
}

}  // namespace offload

#define FAMILY_driver_memory DEFINE_HOOK
#include "interpose/hooks/families.h"
