// SPDX-License-Identifier: Apache-2.0
#include "interpose/hooks/told_copies.h"

#include <algorithm>
#include <iterator>

#include "interpose/driver/own_call.h"
#include "interpose/driver/table.h"
#include "interpose/graphs/captures.h"
#include "interpose/life/sessions.h"
#include "interpose/rules.h"

namespace offload {

constinit std::atomic<int> visible_devices_{0};

namespace {

// Who cannot tell says yes.
bool several_devices() {
  int count = visible_devices_.load(std::memory_order_relaxed);
  if (count != 0) return count > 1;
  if (session() == nullptr) return false;
  if (real<Entry::cuDeviceGetCount>()(&count) != CUDA_SUCCESS) return true;
  visible_devices_.store(std::max(count, 1), std::memory_order_relaxed);
  return count > 1;
}

bool is_on(CUcontext context, CUdevice device) {
  CUdevice found = 0;
  if (const Session* there = session_in(context); there != nullptr)
    return there->device.device == device;
  const OwnCall call(context);
  return real<Entry::cuCtxGetDevice>()(&found) == CUDA_SUCCESS && found == device;
}

// The context in which the stream runs, if that is another device's than the memory. Null: it is
// not, or the driver will refuse the copy.
CUcontext runs_elsewhere(Session& owner, CUstream stream, bool per_thread) {
  const StreamIndex index = owner.stream(stream, per_thread);
  if (owner.is_own(index)) [[likely]]
    return nullptr;
  const bool special =
      stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  CUcontext context = nullptr;
  if (special) {
    context = current_context();
  } else if (real<Entry::cuStreamGetCtx>()(stream, &context) != CUDA_SUCCESS) {
    return nullptr;
  }
  return context == nullptr || is_on(context, owner.device.device) ? nullptr : context;
}

// A context of the device that memory of the driver's is on; null for the host's, and for what
// every device sees. `here` is one of a device for which it may be mapped by hand, in no context.
CUcontext context_of_drivers(CUdeviceptr at, CUcontext here) {
  if (at == 0) return nullptr;
  unsigned type = 0;
  unsigned managed = 0;
  CUcontext context = nullptr;
  CUdevice device = 0;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* values[] = {&type, &managed, &context, &device};
  const RelaxedCapture relaxed(captures_watched());
  const bool answered =
      real<Entry::cuPointerGetAttributes>()(std::size(which), which, values, at) == CUDA_SUCCESS;
  if (!answered) return here;
  if (type != CU_MEMORYTYPE_DEVICE || managed != 0) return nullptr;
  // The context of memory from a pool is that of the stream that asked for it.
  if (is_on(here, device)) return here;
  const Session* there = session_on(device);
  return there != nullptr ? there->device.context : context;
}

}  // namespace

bool must_be_told_among_several(CUdeviceptr to, CUdeviceptr from, CUstream stream, bool per_thread,
                                Ends* ends) {
  if (!several_devices() || !obeys(Rule::kCopyTellsContexts)) return false;
  Session* target = owner_of(to);
  Session* source = owner_of(from);
  Session* ours = target != nullptr ? target : source;
  if (ours == nullptr) return false;
  if (target != source && target != nullptr && source != nullptr) {
    *ends = {target->device.context, source->device.context, true};
    return true;
  }
  const CUcontext here = runs_elsewhere(*ours, stream, per_thread);
  if (here == nullptr) [[likely]]
    return false;
  const CUcontext mine = ours->device.context;
  const CUcontext others =
      target == source ? mine : context_of_drivers(target != nullptr ? from : to, here);
  *ends = {mine, mine, others != nullptr};
  if (others != nullptr) (target != nullptr ? ends->from : ends->to) = others;
  return true;
}

CUresult wait_for_told_copy(bool per_thread) {
  const CUresult result = real<Entry::cuStreamSynchronize>()(explicit_stream(nullptr, per_thread));
  note_result(result);
  return result;
}

}  // namespace offload
