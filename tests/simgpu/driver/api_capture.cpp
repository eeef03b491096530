// SPDX-License-Identifier: Apache-2.0
// Stream capture.
#include <utility>

#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/objects.h"
#include "tests/simgpu/driver/thread_state.h"
#include "tests/simgpu/exec/capture.h"

using simgpu::Call;
using simgpu::Capture;
using simgpu::DefaultStream;
using simgpu::Graph;
using simgpu::GraphNode;
using simgpu::Needs;
using simgpu::Stream;

namespace {

bool is_mode(CUstreamCaptureMode mode) {
  return mode == CU_STREAM_CAPTURE_MODE_GLOBAL || mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
         mode == CU_STREAM_CAPTURE_MODE_RELAXED;
}

std::vector<GraphNode*> nodes_of(const CUgraphNode* handles, size_t count) {
  std::vector<GraphNode*> nodes;
  for (size_t i = 0; i < count; ++i) nodes.push_back(simgpu::graphs::find(handles[i]));
  return nodes;
}

CUresult begin(Call& call, CUstream handle, DefaultStream preset, CUstreamCaptureMode mode,
               Graph* into, std::vector<GraphNode*> dependencies) {
  Stream* stream = call.stream(handle, preset);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!is_mode(mode)) return CUDA_ERROR_INVALID_VALUE;
  if (stream->context->sticky != CUDA_SUCCESS) return stream->context->sticky;
  if (stream->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  simgpu::captures::begin(*stream, mode, into, std::move(dependencies));
  return CUDA_SUCCESS;
}

template <DefaultStream preset>
CUresult begin_2(CUstream handle, CUstreamCaptureMode mode) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  return begin(call, handle, preset, mode, nullptr, {});
}

template <DefaultStream preset>
CUresult begin_1(CUstream handle) {
  return begin_2<preset>(handle, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

template <DefaultStream preset>
CUresult begin_to_graph(CUstream handle, CUgraph graph, const CUgraphNode* dependencies,
                        const CUgraphEdgeData*, size_t count, CUstreamCaptureMode mode) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  Graph* into = simgpu::graphs::find(graph);
  if (into == nullptr || into->capture != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult error = simgpu::graphs::check_dependencies(*into, dependencies, count);
  if (error != CUDA_SUCCESS) return error;
  return begin(call, handle, preset, mode, into, nodes_of(dependencies, count));
}

template <DefaultStream preset>
CUresult end(CUstream handle, CUgraph* graph) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  Stream* stream = call.stream(handle, preset);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  Graph* captured = nullptr;
  const CUresult error = simgpu::captures::end(*stream, &captured);
  *graph = reinterpret_cast<CUgraph>(captured);
  return error;
}

// Legal during a capture. Only about the default stream nothing can be said while a blocking stream
// captures; that does the capture no harm.
CUresult look(Call& call, CUstream handle, DefaultStream preset, Stream** stream) {
  if (call.error != CUDA_SUCCESS) return call.error;
  *stream = call.stream(handle, preset);
  if (*stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if ((*stream)->legacy && simgpu::captures::meets_default_stream((*stream)->context, false)) {
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return (*stream)->context->sticky;
}

CUstreamCaptureStatus status_of(const Stream& stream) {
  if (stream.capture == nullptr) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream.capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

template <DefaultStream preset>
CUresult is_capturing(CUstream handle, CUstreamCaptureStatus* status) {
  Call call(Needs::kContext);
  Stream* stream = nullptr;
  if (CUresult error = look(call, handle, preset, &stream); error != CUDA_SUCCESS) return error;
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *status = status_of(*stream);
  return CUDA_SUCCESS;
}

template <DefaultStream preset>
CUresult info_3(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                const CUgraphNode** dependencies, const CUgraphEdgeData** edges, size_t* count) {
  Call call(Needs::kContext);
  Stream* stream = nullptr;
  if (CUresult error = look(call, handle, preset, &stream); error != CUDA_SUCCESS) return error;
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *status = status_of(*stream);
  const bool active = *status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  const Capture* capture = active ? stream->capture : nullptr;
  if (id != nullptr) *id = capture != nullptr ? capture->id : 0;
  if (graph != nullptr) {
    *graph = capture != nullptr ? reinterpret_cast<CUgraph>(capture->graph) : nullptr;
  }
  // Handles are the nodes' addresses. Valid until the next call that concerns the stream.
  if (dependencies != nullptr) {
    *dependencies =
        active ? reinterpret_cast<const CUgraphNode*>(stream->capture_tail.data()) : nullptr;
  }
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = active ? stream->capture_tail.size() : 0;
  return CUDA_SUCCESS;
}

template <DefaultStream preset>
CUresult info_2(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                const CUgraphNode** dependencies, size_t* count) {
  return info_3<preset>(handle, status, id, graph, dependencies, nullptr, count);
}

template <DefaultStream preset>
CUresult info_1(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return info_3<preset>(handle, status, id, nullptr, nullptr, nullptr, nullptr);
}

template <DefaultStream preset>
CUresult update_2(CUstream handle, CUgraphNode* dependencies, const CUgraphEdgeData*, size_t count,
                  unsigned flags) {
  Call call(Needs::kContext);
  Stream* stream = nullptr;
  if (CUresult error = look(call, handle, preset, &stream); error != CUDA_SUCCESS) return error;
  if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
  const CUresult error =
      simgpu::graphs::check_dependencies(*stream->capture->graph, dependencies, count);
  if (error != CUDA_SUCCESS) return error;
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) stream->capture_tail.clear();
  simgpu::captures::join(*stream->capture, *stream, nodes_of(dependencies, count));
  return CUDA_SUCCESS;
}

template <DefaultStream preset>
CUresult update_1(CUstream handle, CUgraphNode* dependencies, size_t count, unsigned flags) {
  return update_2<preset>(handle, dependencies, nullptr, count, flags);
}

}  // namespace

SIMGPU_API cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (mode == nullptr || !is_mode(*mode)) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, simgpu::thread_state().capture_mode);
  return CUDA_SUCCESS;
}

SIMGPU_STREAM_API(cuStreamBeginCapture, _ptsz, begin_1, (CUstream s), (s))
SIMGPU_STREAM_API(cuStreamBeginCapture_v2, _ptsz, begin_2, (CUstream s, CUstreamCaptureMode mode),
                  (s, mode))
SIMGPU_STREAM_API(cuStreamBeginCaptureToGraph, _ptsz, begin_to_graph,
                  (CUstream s, CUgraph graph, const CUgraphNode* dependencies,
                   const CUgraphEdgeData* edges, size_t count, CUstreamCaptureMode mode),
                  (s, graph, dependencies, edges, count, mode))
SIMGPU_STREAM_API(cuStreamEndCapture, _ptsz, end, (CUstream s, CUgraph* graph), (s, graph))
SIMGPU_STREAM_API(cuStreamIsCapturing, _ptsz, is_capturing,
                  (CUstream s, CUstreamCaptureStatus* status), (s, status))
SIMGPU_STREAM_API(cuStreamGetCaptureInfo, _ptsz, info_1,
                  (CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id), (s, status, id))
SIMGPU_STREAM_API(cuStreamGetCaptureInfo_v2, _ptsz, info_2,
                  (CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                   const CUgraphNode** nodes, size_t* count),
                  (s, status, id, graph, nodes, count))
SIMGPU_STREAM_API(cuStreamGetCaptureInfo_v3, _ptsz, info_3,
                  (CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                   const CUgraphNode** nodes, const CUgraphEdgeData** edges, size_t* count),
                  (s, status, id, graph, nodes, edges, count))
SIMGPU_STREAM_API(cuStreamUpdateCaptureDependencies, _ptsz, update_1,
                  (CUstream s, CUgraphNode* nodes, size_t count, unsigned int flags),
                  (s, nodes, count, flags))
SIMGPU_STREAM_API(cuStreamUpdateCaptureDependencies_v2, _ptsz, update_2,
                  (CUstream s, CUgraphNode* nodes, const CUgraphEdgeData* edges, size_t count,
                   unsigned int flags),
                  (s, nodes, edges, count, flags))
