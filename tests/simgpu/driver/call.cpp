// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/driver/call.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "tests/simgpu/driver/fault_list.h"
#include "tests/simgpu/driver/objects.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/driver/thread_state.h"
#include "tests/simgpu/exec/capture.h"
#include "tests/simgpu/exec/engine.h"
#include "tests/simgpu/exec/fault.h"

namespace simgpu {

namespace {

enum class State { kNew, kReady, kForked, kOver };
std::atomic<State> state{State::kNew};

void after_fork_in_child() {
  if (state.load() == State::kReady) state = State::kForked;
}

}  // namespace

CUresult initialize_driver() {
  Lock lock;
  if (state.load() == State::kForked) return CUDA_ERROR_NOT_INITIALIZED;
  if (state.load() == State::kOver) return CUDA_ERROR_DEINITIALIZED;
  if (options().help) {
    std::fputs(options_help().c_str(), stderr);
    std::fflush(nullptr);
    _exit(0);
  }
  if (options().devices == 0) return CUDA_ERROR_NO_DEVICE;
  lock = Lock(driver_mutex());
  if (state.load() == State::kReady) return CUDA_SUCCESS;
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  install_fault_handler();
  engine();
  state = State::kReady;
  return CUDA_SUCCESS;
}

void deinitialize_driver() {
  if (state.load() == State::kReady) state = State::kOver;
}

bool is_forked_child() {
  return state.load() == State::kForked;
}

CUresult driver_status() {
  switch (state.load(std::memory_order_relaxed)) {
    case State::kReady:
      return CUDA_SUCCESS;
    case State::kOver:
      return CUDA_ERROR_DEINITIALIZED;
    default:
      return CUDA_ERROR_NOT_INITIALIZED;
  }
}

ApiName::ApiName(const char* name) : outermost_(thread_state().api == nullptr) {
  if (outermost_) thread_state().api = name;
}

ApiName::~ApiName() {
  if (outermost_) thread_state().api = nullptr;
}

Call::~Call() {
  if (lock.owns_lock()) engine().leave_call(lock);
}

Call::Call(Needs needs, Capturing capturing, const char* api) : error(driver_status()) {
  if (error != CUDA_SUCCESS) return;
  engine().note_api_call();
  lock = Lock(driver_mutex());
  if (thread_state().in_host_function) {
    error = CUDA_ERROR_NOT_PERMITTED;
    return;
  }
  if (thread_state().api != nullptr) api = thread_state().api;
  engine().enter_call(lock, api);
  const auto& stack = thread_state().contexts;
  if (!stack.empty()) context = stack.back();
  error = injected_fault(api);
  if (error != CUDA_SUCCESS) {
    if (context != nullptr && contexts().find(context) != nullptr && is_sticky(error)) {
      lose(*context, error);
    }
    return;
  }
  if (needs == Needs::kDriver) {
    // A context is not asked for.
  } else if (context == nullptr) {
    error = CUDA_ERROR_INVALID_CONTEXT;
  } else if (contexts().find(context) == nullptr) {
    error = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  } else {
    error = context->sticky;
  }
  if (error == CUDA_SUCCESS && capturing == Capturing::kUnsafe) error = unsafe_error();
}

CUresult Call::unsafe_error() {
  return captures::forbid_unsafe_call() ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult Call::stream_error(const Stream& stream) {
  if (stream.context->sticky != CUDA_SUCCESS) return stream.context->sticky;
  if (stream.capture != nullptr && stream.capture->invalid) {
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  if (stream.legacy && captures::meets_default_stream(stream.context, true)) {
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return CUDA_SUCCESS;
}

CUresult Call::wait_error(const Stream& stream) {
  const CUresult error = stream_error(stream);
  if (error != CUDA_SUCCESS || stream.capture == nullptr) return error;
  captures::invalidate(*stream.capture);
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult Call::no_stream(CUstream handle) {
  const StreamHandle* found = stream_handles().find(handle);
  return found != nullptr && found->stream == nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                      : CUDA_ERROR_INVALID_HANDLE;
}

Stream* Call::stream(CUstream handle, DefaultStream preset) {
  if (handle == nullptr) {
    handle = preset == DefaultStream::kLegacy ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD;
  }
  if (handle == CU_STREAM_LEGACY) return context ? context->legacy : nullptr;
  if (handle == CU_STREAM_PER_THREAD) {
    if (context == nullptr) return nullptr;
    auto& mine = thread_state().default_streams;
    for (auto& [owner, stream] : mine) {
      if (owner == context && stream->context_id == context->id) return stream;
    }
    Stream* created = engine().create_stream(lock, context, CU_STREAM_DEFAULT, 0);
    created->per_thread = true;
    mine.emplace_back(context, created);
    return created;
  }
  StreamHandle* found = stream_handles().find(handle);
  return found != nullptr ? found->stream : nullptr;
}

}  // namespace simgpu
