// SPDX-License-Identifier: Apache-2.0
// Events.
#include <ctime>

#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/objects.h"
#include "tests/simgpu/driver/statistics.h"
#include "tests/simgpu/exec/capture.h"
#include "tests/simgpu/exec/engine.h"
#include "tests/simgpu/memory/pool.h"

using simgpu::Call;
using simgpu::DefaultStream;
using simgpu::engine;
using simgpu::event_handles;
using simgpu::EventHandle;
using simgpu::Needs;
using simgpu::Stream;

namespace {

constexpr unsigned kEventFlags =
    CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

template <DefaultStream preset>
CUresult record_with_flags(CUevent event, CUstream handle, unsigned flags) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  EventHandle* entry = event_handles().find(event);
  Stream* stream = call.stream(handle, preset);
  if (entry == nullptr || stream == nullptr || entry->context != &stream->context->owner()) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  const bool external = flags == CU_EVENT_RECORD_EXTERNAL;
  if (flags != 0 && !external) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult error = Call::stream_error(*stream); error != CUDA_SUCCESS) return error;
  if (stream->capture != nullptr) {
    if (external) return simgpu::captures::add(*stream, simgpu::EventRecordNode{event});
    entry->record = nullptr;
    entry->captured_in = stream->capture->id;
    entry->captured = stream->capture_tail;
    return CUDA_SUCCESS;
  }
  if (external) return CUDA_ERROR_INVALID_VALUE;
  ++simgpu::statistics().events_recorded;
  simgpu::RecordRef record = engine().record(call.lock, *stream);
  // A full queue lets other threads in; the event may be gone.
  if ((entry = event_handles().find(event)) != nullptr) {
    entry->record = std::move(record);
    entry->captured_in = 0;
    if (entry->shared != nullptr) {
      entry->shared_number = entry->shared->record();
      engine().add(call.lock, *stream,
                   std::make_unique<simgpu::SharedSignalOp>(entry->shared, entry->shared_number));
    }
  }
  return CUDA_SUCCESS;
}

template <DefaultStream preset>
CUresult record(CUevent event, CUstream handle) {
  return record_with_flags<preset>(event, handle, 0);
}

CUresult wait_for_captured(Stream& stream, const EventHandle& event) {
  simgpu::Capture* capture = simgpu::captures::find(event.captured_in);
  if (capture == nullptr) return CUDA_ERROR_CAPTURED_EVENT;
  if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream.legacy) {
    simgpu::captures::invalidate(*capture);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (stream.capture != nullptr && stream.capture != capture) {
    simgpu::captures::invalidate(*stream.capture);
    simgpu::captures::invalidate(*capture);
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  simgpu::captures::join(*capture, stream, event.captured);
  return CUDA_SUCCESS;
}

// Why an event may not be looked at. One that was recorded in a capture stands for no work; asking
// for it spoils the capture.
CUresult look_error(const EventHandle& event) {
  if (event.captured_in == 0) return Call::unsafe_error();
  if (auto* capture = simgpu::captures::find(event.captured_in)) {
    simgpu::captures::invalidate(*capture);
  }
  return CUDA_ERROR_CAPTURED_EVENT;
}

template <DefaultStream preset>
CUresult wait_event(CUstream handle, CUevent event, unsigned flags) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  const EventHandle* entry = event_handles().find(event);
  Stream* stream = call.stream(handle, preset);
  if (entry == nullptr || stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const bool external = flags == CU_EVENT_WAIT_EXTERNAL;
  if (flags != 0 && !external) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult error = Call::stream_error(*stream); error != CUDA_SUCCESS) return error;
  if (external) {
    if (stream->capture == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return simgpu::captures::add(*stream, simgpu::EventWaitNode{event});
  }
  if (entry->captured_in != 0) return wait_for_captured(*stream, *entry);
  if (stream->capture != nullptr && entry->record != nullptr) {
    // What is not captured cannot be waited for by what is.
    simgpu::captures::invalidate(*stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  ++simgpu::statistics().event_waits;
  if (entry->recorded_elsewhere()) {
    engine().submit(
        call.lock, *stream,
        std::make_unique<simgpu::SharedWaitOp>(entry->shared, entry->shared->recorded()));
    return CUDA_SUCCESS;
  }
  // An event that was never recorded is complete.
  if (entry->record == nullptr) return CUDA_SUCCESS;
  engine().submit(call.lock, *stream, std::make_unique<simgpu::WaitOp>(entry->record));
  return CUDA_SUCCESS;
}

}  // namespace

SIMGPU_API cuEventCreate(CUevent* event, unsigned int flags) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (event == nullptr || (flags & ~kEventFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::shared_ptr<simgpu::SharedEvent> shared;
  if ((flags & CU_EVENT_INTERPROCESS) != 0) {
    shared = simgpu::SharedEvent::create();
    if (shared == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  }
  EventHandle* entry = event_handles().create();
  entry->shared = std::move(shared);
  entry->context = &call.context->owner();
  entry->flags = flags;
  *event = reinterpret_cast<CUevent>(entry);
  return CUDA_SUCCESS;
}

SIMGPU_API cuEventDestroy_v2(CUevent event) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS && call.error != CUDA_ERROR_ILLEGAL_ADDRESS) return call.error;
  EventHandle* entry = event_handles().find(event);
  if (entry == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  event_handles().destroy(entry);
  return call.error;
}

SIMGPU_API cuEventDestroy(CUevent event) {
  const simgpu::ApiName api_name(__func__);
  return cuEventDestroy_v2(event);
}

SIMGPU_API cuEventQuery(CUevent event) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  const EventHandle* entry = event_handles().find(event);
  if (entry == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult error = look_error(*entry); error != CUDA_SUCCESS) return error;
  if (entry->recorded_elsewhere()) {
    return entry->shared->is_done(entry->shared->recorded()) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  }
  const simgpu::RecordRef record = entry->record;
  if (record == nullptr) return CUDA_SUCCESS;
  if (!engine().query(call.lock, *record)) return CUDA_ERROR_NOT_READY;
  return entry->context->sticky;
}

SIMGPU_API cuEventSynchronize(CUevent event) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  const EventHandle* entry = event_handles().find(event);
  if (entry == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult error = look_error(*entry); error != CUDA_SUCCESS) return error;
  if (entry->recorded_elsewhere()) {
    const auto shared = entry->shared;
    const uint64_t number = shared->recorded();
    call.lock.unlock();
    const timespec pause{0, 100000};
    while (!shared->is_done(number)) nanosleep(&pause, nullptr);
    return CUDA_SUCCESS;
  }
  const simgpu::RecordRef record = entry->record;
  const simgpu::Context* context = entry->context;
  if (record != nullptr) {
    engine().synchronize(call.lock, *record, "cuEventSynchronize");
  }
  simgpu::pools::after_synchronisation();
  return context->sticky;
}

SIMGPU_API cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  const EventHandle* from = event_handles().find(start);
  const EventHandle* to = event_handles().find(end);
  if (from == nullptr || to == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (from->captured_in != 0 || to->captured_in != 0) return CUDA_ERROR_CAPTURED_EVENT;
  if (((from->flags | to->flags) & CU_EVENT_DISABLE_TIMING) != 0 || from->record == nullptr ||
      to->record == nullptr) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!from->record->done || !to->record->done) return CUDA_ERROR_NOT_READY;
  *milliseconds = static_cast<float>(to->record->time_ns - from->record->time_ns) * 1e-6F;
  return CUDA_SUCCESS;
}

SIMGPU_API cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  const simgpu::ApiName api_name(__func__);
  return cuEventElapsedTime(milliseconds, start, end);
}

SIMGPU_STREAM_API(cuEventRecord, _ptsz, record, (CUevent e, CUstream s), (e, s))
SIMGPU_STREAM_API(cuEventRecordWithFlags, _ptsz, record_with_flags,
                  (CUevent e, CUstream s, unsigned int f), (e, s, f))
SIMGPU_STREAM_API(cuStreamWaitEvent, _ptsz, wait_event, (CUstream s, CUevent e, unsigned int f),
                  (s, e, f))
