// SPDX-License-Identifier: Apache-2.0
// Streams, events and host functions.

#include <cuda_runtime_api.h>

#include "tests/simgpu/runtime/call.h"
#include "tests/simgpu/runtime/devices.h"

namespace simgpu::runtime {

namespace {

template <Flavor flavor>
cudaError_t synchronize(cudaStream_t stream) {
  return with_context(
      [&](const Driver& api) { return call(api.cuStreamSynchronize[flavor], stream); });
}

template <Flavor flavor>
cudaError_t query(cudaStream_t stream) {
  return with_context([&](const Driver& api) { return call(api.cuStreamQuery[flavor], stream); });
}

template <Flavor flavor>
cudaError_t wait_event(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return with_context(
      [&](const Driver& api) { return call(api.cuStreamWaitEvent[flavor], stream, event, flags); });
}

template <Flavor flavor>
cudaError_t add_callback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                         unsigned flags) {
  // Same arguments, same codes: only the names of the types differ.
  return with_context([&](const Driver& api) {
    return call(api.cuStreamAddCallback[flavor], stream,
                reinterpret_cast<CUstreamCallback>(callback), data, flags);
  });
}

template <Flavor flavor>
cudaError_t launch_host_function(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return with_context([&](const Driver& api) {
    return call(api.cuLaunchHostFunc[flavor], stream, function, data);
  });
}

template <Flavor flavor>
cudaError_t is_capturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return with_context([&](const Driver& api) {
    return call(api.cuStreamIsCapturing[flavor], stream,
                reinterpret_cast<CUstreamCaptureStatus*>(status));
  });
}

template <Flavor flavor>
cudaError_t capture_info(cudaStream_t stream, cudaStreamCaptureStatus* status,
                         unsigned long long* id, cudaGraph_t* graph,
                         const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                         size_t* count) {
  return with_context([&](const Driver& api) {
    cuuint64_t number = 0;
    const cudaError_t result =
        call(api.cuStreamGetCaptureInfo[flavor], stream,
             reinterpret_cast<CUstreamCaptureStatus*>(status), &number, graph, dependencies,
             reinterpret_cast<const CUgraphEdgeData**>(edges), count);
    if (id != nullptr) *id = number;
    return result;
  });
}

template <Flavor flavor>
cudaError_t stream_id(cudaStream_t stream, unsigned long long* id) {
  return with_context(
      [&](const Driver& api) { return call(api.cuStreamGetId[flavor], stream, id); });
}

template <Flavor flavor>
cudaError_t stream_flags(cudaStream_t stream, unsigned* flags) {
  return with_context(
      [&](const Driver& api) { return call(api.cuStreamGetFlags[flavor], stream, flags); });
}

template <Flavor flavor>
cudaError_t stream_priority(cudaStream_t stream, int* priority) {
  return with_context(
      [&](const Driver& api) { return call(api.cuStreamGetPriority[flavor], stream, priority); });
}

template <Flavor flavor>
cudaError_t stream_device(cudaStream_t stream, int* device) {
  return with_context([&](const Driver& api) {
    CUdevice handle = 0;
    const cudaError_t status = call(api.cuStreamGetDevice[flavor], stream, &handle);
    if (status == cudaSuccess) *device = handle;
    return status;
  });
}

template <Flavor flavor>
cudaError_t stream_attribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                             cudaLaunchAttributeValue* value) {
  return with_context([&](const Driver& api) {
    return call(api.cuStreamGetAttribute[flavor], stream, static_cast<CUstreamAttrID>(attribute),
                reinterpret_cast<CUstreamAttrValue*>(value));
  });
}

template <Flavor flavor>
cudaError_t set_stream_attribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                 const cudaLaunchAttributeValue* value) {
  return with_context([&](const Driver& api) {
    return call(api.cuStreamSetAttribute[flavor], stream, static_cast<CUstreamAttrID>(attribute),
                reinterpret_cast<const CUstreamAttrValue*>(value));
  });
}

template <Flavor flavor>
cudaError_t copy_stream_attributes(cudaStream_t to, cudaStream_t from) {
  return with_context(
      [&](const Driver& api) { return call(api.cuStreamCopyAttributes[flavor], to, from); });
}

template <Flavor flavor>
cudaError_t record(cudaEvent_t event, cudaStream_t stream) {
  return with_context(
      [&](const Driver& api) { return call(api.cuEventRecord[flavor], event, stream); });
}

template <Flavor flavor>
cudaError_t record_with_flags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return with_context([&](const Driver& api) {
    return call(api.cuEventRecordWithFlags[flavor], event, stream, flags);
  });
}

}  // namespace

RUNTIME_API cudaStreamCreate(cudaStream_t* stream) {
  return with_context([&](const Driver& api) {
    return call(api.cuStreamCreate, stream, unsigned{CU_STREAM_DEFAULT});
  });
}

RUNTIME_API cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return with_context([&](const Driver& api) { return call(api.cuStreamCreate, stream, flags); });
}

RUNTIME_API cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return with_context([&](const Driver& api) {
    return call(api.cuStreamCreateWithPriority, stream, flags, priority);
  });
}

RUNTIME_API cudaStreamDestroy(cudaStream_t stream) {
  return with_context([&](const Driver& api) { return call(api.cuStreamDestroy, stream); });
}

RUNTIME_API cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return with_context([&](const Driver& api) {
    return call(api.cuThreadExchangeStreamCaptureMode,
                reinterpret_cast<CUstreamCaptureMode*>(mode));
  });
}

RUNTIME_PAIR(cudaStreamSynchronize, _ptsz, (cudaStream_t stream), synchronize, (stream))
RUNTIME_PAIR(cudaStreamQuery, _ptsz, (cudaStream_t stream), query, (stream))
RUNTIME_PAIR(cudaStreamWaitEvent, _ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
             wait_event, (stream, event, flags))
RUNTIME_PAIR(cudaStreamAddCallback, _ptsz,
             (cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned flags),
             add_callback, (stream, callback, data, flags))
RUNTIME_PAIR(cudaLaunchHostFunc, _ptsz, (cudaStream_t stream, cudaHostFn_t function, void* data),
             launch_host_function, (stream, function, data))
RUNTIME_PAIR(cudaStreamIsCapturing, _ptsz, (cudaStream_t stream, cudaStreamCaptureStatus* status),
             is_capturing, (stream, status))
RUNTIME_PAIR(cudaStreamGetCaptureInfo, _ptsz,
             (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
              cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
              const cudaGraphEdgeData** edges, size_t* count),
             capture_info, (stream, status, id, graph, dependencies, edges, count))
RUNTIME_PAIR(cudaStreamGetId, _ptsz, (cudaStream_t stream, unsigned long long* id), stream_id,
             (stream, id))
RUNTIME_PAIR(cudaStreamGetFlags, _ptsz, (cudaStream_t stream, unsigned* flags), stream_flags,
             (stream, flags))
RUNTIME_PAIR(cudaStreamGetPriority, _ptsz, (cudaStream_t stream, int* priority), stream_priority,
             (stream, priority))
RUNTIME_PAIR(cudaStreamGetDevice, _ptsz, (cudaStream_t stream, int* device), stream_device,
             (stream, device))
RUNTIME_PAIR(cudaStreamGetAttribute, _ptsz,
             (cudaStream_t stream, cudaLaunchAttributeID attribute,
              cudaLaunchAttributeValue* value),
             stream_attribute, (stream, attribute, value))
RUNTIME_PAIR(cudaStreamSetAttribute, _ptsz,
             (cudaStream_t stream, cudaLaunchAttributeID attribute,
              const cudaLaunchAttributeValue* value),
             set_stream_attribute, (stream, attribute, value))
RUNTIME_PAIR(cudaStreamCopyAttributes, _ptsz, (cudaStream_t to, cudaStream_t from),
             copy_stream_attributes, (to, from))

RUNTIME_API cudaEventCreate(cudaEvent_t* event) {
  return with_context([&](const Driver& api) {
    return call(api.cuEventCreate, event, unsigned{CU_EVENT_DEFAULT});
  });
}

RUNTIME_WIPED(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), (event, flags)) {
  return with_context([&](const Driver& api) { return call(api.cuEventCreate, event, flags); });
}

RUNTIME_WIPED(cudaEventQuery, (cudaEvent_t event), (event)) {
  return with_context([&](const Driver& api) { return call(api.cuEventQuery, event); });
}

RUNTIME_API cudaEventSynchronize(cudaEvent_t event) {
  return with_context([&](const Driver& api) { return call(api.cuEventSynchronize, event); });
}

RUNTIME_API cudaEventDestroy(cudaEvent_t event) {
  return with_context([&](const Driver& api) { return call(api.cuEventDestroy, event); });
}

RUNTIME_API cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return with_context(
      [&](const Driver& api) { return call(api.cuEventElapsedTime, milliseconds, start, end); });
}

RUNTIME_PAIR(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream), record,
             (event, stream))
RUNTIME_PAIR(cudaEventRecordWithFlags, _ptsz,
             (cudaEvent_t event, cudaStream_t stream, unsigned flags), record_with_flags,
             (event, stream, flags))

}  // namespace simgpu::runtime
