// SPDX-License-Identifier: Apache-2.0
#include "interpose/hooks/told_copies.h"

#include <atomic>
#include <iterator>

#include "interpose/driver/own_call.h"
#include "interpose/driver/table.h"
#include "interpose/graphs/captures.h"
#include "interpose/life/sessions.h"
#include "interpose/rules.h"

namespace offload {
namespace {

// Known from the first copy on that can have to do with it. Who cannot tell says yes.
bool several_devices() {
  static constinit std::atomic<int> known{0};
  int count = known.load(std::memory_order_relaxed);
  if (count != 0) [[likely]]
    return count > 1;
  if (session() == nullptr) return false;
  if (real<Entry::cuDeviceGetCount>()(&count) != CUDA_SUCCESS) return true;
  known.store(count, std::memory_order_relaxed);
  return count > 1;
}

struct Residence {
  CUcontext context = nullptr;  // null: the host's, or every device's
  CUdevice device = 0;
};

Residence residence(const Session& owner) {
  return {owner.device.context, owner.device.device};
}

Residence residence_of_drivers(CUdeviceptr at) {
  if (at == 0) return {};
  unsigned type = 0;
  unsigned managed = 0;
  Residence found;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* values[] = {&type, &managed, &found.context, &found.device};
  const RelaxedCapture relaxed(captures_watched());
  const bool answered =
      real<Entry::cuPointerGetAttributes>()(std::size(which), which, values, at) == CUDA_SUCCESS;
  if (!answered || type != CU_MEMORYTYPE_DEVICE || managed != 0) return {};
  if (found.context != nullptr) return found;
  // Memory that is mapped by hand is in no context.
  const Session* there = session_on(found.device);
  return there != nullptr ? residence(*there) : Residence{};
}

bool is_on(CUcontext context, CUdevice device) {
  CUdevice found = 0;
  if (const Session* there = session_in(context); there != nullptr)
    return there->device.device == device;
  const OwnCall call(context);
  return real<Entry::cuCtxGetDevice>()(&found) == CUDA_SUCCESS && found == device;
}

bool runs_elsewhere(Session& owner, CUstream stream, bool per_thread) {
  const StreamIndex index = owner.stream(stream, per_thread);
  if (owner.is_own(index)) [[likely]]
    return false;
  const bool special =
      stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  CUcontext context = nullptr;
  if (special) {
    context = current_context();
  } else if (real<Entry::cuStreamGetCtx>()(stream, &context) != CUDA_SUCCESS) {
    return false;
  }
  return context != nullptr && !is_on(context, owner.device.device);
}

}  // namespace

bool must_be_told(CUdeviceptr to, CUdeviceptr from, CUstream stream, bool per_thread, Ends* ends) {
  if (!several_devices() || !obeys(Rule::kCopyTellsContexts)) [[likely]]
    return false;
  Session* target = owner_of(to);
  Session* source = owner_of(from);
  Session* ours = target != nullptr ? target : source;
  if (ours == nullptr) return false;
  const bool elsewhere = runs_elsewhere(*ours, stream, per_thread);
  if (target == source && !elsewhere) return false;
  const Residence there = target != nullptr ? residence(*target) : residence_of_drivers(to);
  const Residence here = source != nullptr ? residence(*source) : residence_of_drivers(from);
  const bool both = there.context != nullptr && here.context != nullptr;
  const CUcontext mine = ours->device.context;
  *ends = {there.context != nullptr ? there.context : mine,
           here.context != nullptr ? here.context : mine, both};
  return elsewhere || (both && there.device != here.device);
}

CUresult wait_for_told_copy(bool per_thread) {
  const CUresult result = real<Entry::cuStreamSynchronize>()(explicit_stream(nullptr, per_thread));
  note_result(result);
  return result;
}

}  // namespace offload
