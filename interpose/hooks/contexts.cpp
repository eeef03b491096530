// SPDX-License-Identifier: Apache-2.0
// Which context a thread is in, and contexts that end.

#include "interpose/driver/device.h"
#include "interpose/hooks/define.h"
#include "interpose/life/session.h"

namespace offload {
namespace {

// The device's primary context if the session has to do with it, be it its own or another whose
// streams use its memory; else null.
CUcontext context_of_concern(CUdevice device) {
  Session* active = session();
  if (active == nullptr) return nullptr;
  if (active->device.device == device) return active->device.context;
  const CUcontext primary = primary_context(device);
  return active->engine.follows_streams_of(primary) ? primary : nullptr;
}

// Our worker asks nothing of a context that is being destroyed, and what others were given with our
// memory has happened.
class WorkerPaused {
 public:
  explicit WorkerPaused(CUcontext dying) {
    Session* active = session();
    if (active == nullptr || dying == nullptr) return;
    if (active->device.context != dying && !active->engine.follows_streams_of(dying)) return;
    if (active->device.context != dying) active->engine.other_context_ends(dying);
    paused_ = active;
    paused_->worker.pause();
  }
  ~WorkerPaused() {
    if (paused_ != nullptr) paused_->worker.resume();
  }
  WorkerPaused(const WorkerPaused&) = delete;
  WorkerPaused& operator=(const WorkerPaused&) = delete;

 private:
  Session* paused_ = nullptr;
};

}  // namespace

template <Entry E, typename Device>
CUresult ctx_create(CUcontext* context, unsigned flags, Device device) {
  const CUresult result = real<E>()(context, flags, device);
  context_changed();
  return result;
}

template <Entry E>
CUresult ctx_create_v3(CUcontext* context, CUexecAffinityParam* affinity, int count, unsigned flags,
                       CUdevice device) {
  const CUresult result = real<E>()(context, affinity, count, flags, device);
  context_changed();
  return result;
}

template <Entry E>
CUresult ctx_create_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned flags,
                       CUdevice device) {
  const CUresult result = real<E>()(context, parameters, flags, device);
  context_changed();
  return result;
}

// Runtimes set the same context again and again.
template <Entry E>
CUresult ctx_set_current(CUcontext context) {
  const CUresult result = real<E>()(context);
  if (result != CUDA_SUCCESS || !this_thread.context_known || this_thread.context != context)
    context_changed();
  return result;
}

template <Entry E>
CUresult ctx_push_current(CUcontext context) {
  const CUresult result = real<E>()(context);
  context_changed();
  return result;
}

template <Entry E>
CUresult ctx_pop_current(CUcontext* context) {
  const CUresult result = real<E>()(context);
  context_changed();
  return result;
}

template <Entry E>
CUresult ctx_destroy(CUcontext context) {
  const WorkerPaused paused(context);
  const CUresult result = real<E>()(context);
  context_changed();
  if (result == CUDA_SUCCESS) {
    a_context_died();
    context_died(context);
  }
  return result;
}

template <Entry E>
CUresult primary_ctx_release(CUdevice device) {
  const CUcontext context = context_of_concern(device);
  const WorkerPaused paused(context);
  const CUresult result = real<E>()(device);
  context_changed();
  if (result == CUDA_SUCCESS) a_context_died();
  unsigned flags = 0;
  int alive = 1;
  if (context != nullptr && result == CUDA_SUCCESS &&
      real<Entry::cuDevicePrimaryCtxGetState>()(device, &flags, &alive) == CUDA_SUCCESS &&
      alive == 0) {
    context_died(context);
  }
  return result;
}

template <Entry E>
CUresult primary_ctx_reset(CUdevice device) {
  const CUcontext context = context_of_concern(device);
  const WorkerPaused paused(context);
  const CUresult result = real<E>()(device);
  context_changed();
  if (result == CUDA_SUCCESS) a_context_died();
  if (context != nullptr && result == CUDA_SUCCESS) context_died(context);
  return result;
}

}  // namespace offload

#define FAMILY_contexts DEFINE_HOOK
#include "interpose/hooks/families.h"
