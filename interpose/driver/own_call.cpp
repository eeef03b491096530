// SPDX-License-Identifier: Apache-2.0
#include "interpose/driver/own_call.h"

#include <atomic>

#include "interpose/driver/table.h"
#include "interpose/life/thread_state.h"
#include "interpose/rules.h"
#include "profiler/base/log.h"

namespace offload {
namespace {
constinit std::atomic<bool> forgetful{false};  // contexts change past our hooks: always ask
}  // namespace

RelaxedCapture::RelaxedCapture(bool wanted) {
  if (!wanted || this_thread.relaxed || !obeys(Rule::kCallsRelaxTheMode)) return;
  exchanged_ = real<Entry::cuThreadExchangeStreamCaptureMode>()(&mode_) == CUDA_SUCCESS;
  this_thread.relaxed = exchanged_;
}

RelaxedCapture::~RelaxedCapture() {
  if (!exchanged_) return;
  real<Entry::cuThreadExchangeStreamCaptureMode>()(&mode_);
  this_thread.relaxed = false;
}

OwnCall::OwnCall(CUcontext context, Kind kind)
    : was_inside_(this_thread.inside), relaxed_(kind == Kind::kAny) {
  this_thread.inside = true;
  if (current_context() == context) return;
  pushed_ = real<Entry::cuCtxPushCurrent_v2>()(context) == CUDA_SUCCESS;
  this_thread.context = context;
  this_thread.context_known = pushed_;
}

OwnCall::~OwnCall() {
  if (pushed_) {
    CUcontext popped = nullptr;
    real<Entry::cuCtxPopCurrent_v2>()(&popped);
    this_thread.context_known = false;
  }
  this_thread.inside = was_inside_;
}

CUcontext current_context() {
  if (!this_thread.context_known) {
    CUcontext context = nullptr;
    if (real<Entry::cuCtxGetCurrent>()(&context) != CUDA_SUCCESS) return nullptr;
    this_thread.context = context;
    // A first context may come in ways that we do not see.
    this_thread.context_known = context != nullptr && !forgetful.load(std::memory_order_relaxed);
  }
  return static_cast<CUcontext>(this_thread.context);
}

void check_current_context() {
  if (!this_thread.context_known) return;
  void* const remembered = this_thread.context;
  this_thread.context_known = false;
  if (current_context() == remembered) return;
  if (!forgetful.exchange(true, std::memory_order_relaxed)) {
    log_debug("contexts change past our hooks: the current one is asked for every time");
  }
  this_thread.context_known = false;
}

}  // namespace offload
