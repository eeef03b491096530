// SPDX-License-Identifier: Apache-2.0
// Calls for which the driver may need device memory of its own, and which do nothing else to ours.

#include "interpose/hooks/define.h"
#include "interpose/hooks/device_memory.h"
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

}  // namespace offload

#define FAMILY_driver_memory DEFINE_HOOK
#include "interpose/hooks/families.h"
