// SPDX-License-Identifier: Apache-2.0
// Which context a thread is in, and contexts that end.

#include "interpose/driver/device.h"
#include "interpose/hooks/define.h"
#include "interpose/hooks/device_memory.h"
#include "interpose/life/sessions.h"

namespace offload {
namespace {

// Whether the session has to do with the context, be it its own or another whose streams use its
// memory.
bool is_of_concern(Session& session, CUcontext context) {
  return session.device.context == context || session.engine.follows_streams_of(context);
}

// The device's primary context if a session has to do with it; else null.
CUcontext context_of_concern(CUdevice device) {
  if (session() == nullptr) return nullptr;
  if (Session* own = session_on(device); own != nullptr) return own->device.context;
  const CUcontext primary = primary_context(device);
  const bool known = find_session([primary](Session& each) {
                       return each.engine.follows_streams_of(primary);
                     }) != nullptr;
  return known ? primary : nullptr;
}

// Our workers ask nothing of a context that is being destroyed, and what others were given with our
// memory has happened.
class WorkersPaused {
 public:
  explicit WorkersPaused(CUcontext dying) {
    if (dying == nullptr) return;
    for_each_session([this, dying](Session& each) {
      if (!is_of_concern(each, dying)) return;
      if (each.device.context != dying) {
        each.engine.other_context_ends(dying);
        forget_streams();
      }
      each.worker.pause();
      each.engine.collect();  // while its events can be asked
      paused_.push_back(&each);
    });
  }
  ~WorkersPaused() {
    for (Session* each : paused_) each->worker.resume();
  }
  WorkersPaused(const WorkersPaused&) = delete;
  WorkersPaused& operator=(const WorkersPaused&) = delete;

 private:
  OwnVector<Session*> paused_;
};

// The device's primary context, of which it is known that a session has to do with it, has ended.
void primary_may_have_died(CUcontext context, CUdevice device) {
  unsigned flags = 0;
  int alive = 1;
  if (context != nullptr &&
      real<Entry::cuDevicePrimaryCtxGetState>()(device, &flags, &alive) == CUDA_SUCCESS &&
      alive == 0) {
    context_died(context);
  }
}

// False: it is none.
bool device_of(CUcontext context, CUdevice* device) {
  if (real<Entry::cuCtxPushCurrent_v2>()(context) != CUDA_SUCCESS) return false;
  const bool answered = real<Entry::cuCtxGetDevice>()(device) == CUDA_SUCCESS;
  CUcontext popped = nullptr;
  real<Entry::cuCtxPopCurrent_v2>()(&popped);
  return answered;
}

}  // namespace

template <Entry E, typename Device>
CUresult ctx_create(CUcontext* context, unsigned flags, Device device) {
  const CUresult result = with_device_memory(
      0, [=] { return real<E>()(context, flags, device); }, device);
  context_changed();
  return result;
}

template <Entry E>
CUresult ctx_create_v3(CUcontext* context, CUexecAffinityParam* affinity, int count, unsigned flags,
                       CUdevice device) {
  const CUresult result = with_device_memory(
      0, [=] { return real<E>()(context, affinity, count, flags, device); }, device);
  context_changed();
  return result;
}

template <Entry E>
CUresult ctx_create_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned flags,
                       CUdevice device) {
  const CUresult result = with_device_memory(
      0, [=] { return real<E>()(context, parameters, flags, device); }, device);
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
  const WorkersPaused paused(context);
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
  const WorkersPaused paused(context);
  const CUresult result = real<E>()(device);
  context_changed();
  if (result == CUDA_SUCCESS) {
    a_context_died();
    primary_may_have_died(context, device);
  }
  return result;
}

// Hooked only to be at hand below: drivers before CUDA 12.4 have no green contexts.
template <Entry E>
CUresult ctx_from_green_ctx(CUcontext* context, CUgreenCtx green) {
  return real<E>()(context, green);
}

// Releases the primary context, too, that it was made of.
template <Entry E>
CUresult green_ctx_destroy(CUgreenCtx green) {
  CUcontext context = nullptr;
  CUcontext primary = nullptr;
  CUdevice device = 0;
  if (session() != nullptr && real<Entry::cuCtxFromGreenCtx>()(&context, green) == CUDA_SUCCESS &&
      device_of(context, &device)) {
    primary = context_of_concern(device);
  }
  const WorkersPaused paused(context);
  const WorkersPaused paused_for_primary(primary);
  const CUresult result = real<E>()(green);
  context_changed();
  if (result == CUDA_SUCCESS) {
    a_context_died();
    if (context != nullptr) context_died(context);
    primary_may_have_died(primary, device);
  }
  return result;
}

template <Entry E>
CUresult primary_ctx_reset(CUdevice device) {
  const CUcontext context = context_of_concern(device);
  const WorkersPaused paused(context);
  const CUresult result = real<E>()(device);
  context_changed();
  if (result == CUDA_SUCCESS) a_context_died();
  if (context != nullptr && result == CUDA_SUCCESS) context_died(context);
  return result;
}

}  // namespace offload

#define FAMILY_contexts DEFINE_HOOK
#include "interpose/hooks/families.h"
