// SPDX-License-Identifier: Apache-2.0
// A capture begins and ends, and which calls a thread allows itself meanwhile.

#include "interpose/graphs/captures.h"
#include "interpose/hooks/define.h"

namespace offload {
namespace {

template <Entry E, typename... Arguments>
CUresult begin(CUstream stream, CUstreamCaptureMode mode, bool owns_graph, Arguments... arguments) {
  const CUstream handle = explicit_stream(stream, RealType<E>::per_thread);
  const MayCapture around(handle);
  const CUresult result = real<E>()(stream, arguments...);
  if (result == CUDA_SUCCESS) capture_began(handle, mode, owns_graph);
  return result;
}

}  // namespace

template <Entry E>
CUresult begin_capture_v1(CUstream stream) {
  return begin<E>(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, true);
}

template <Entry E>
CUresult begin_capture(CUstream stream, CUstreamCaptureMode mode) {
  return begin<E>(stream, mode, true, mode);
}

template <Entry E>
CUresult begin_capture_to_graph(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                const CUgraphEdgeData* edges, size_t count,
                                CUstreamCaptureMode mode) {
  return begin<E>(stream, mode, false, graph, dependencies, edges, count, mode);
}

template <Entry E>
CUresult end_capture(CUstream stream, CUgraph* graph) {
  if (!captures_watched()) return real<E>()(stream, graph);
  EndCapture around(explicit_stream(stream, RealType<E>::per_thread));
  const CUresult result = real<E>()(stream, graph);
  around.ended(result == CUDA_SUCCESS && graph != nullptr ? *graph : nullptr);
  return result;
}

template <Entry E>
CUresult exchange_capture_mode(CUstreamCaptureMode* mode) {
  const CUstreamCaptureMode wanted = mode != nullptr ? *mode : CU_STREAM_CAPTURE_MODE_GLOBAL;
  const CUresult result = real<E>()(mode);
  if (result == CUDA_SUCCESS) note_capture_mode(wanted);
  return result;
}

}  // namespace offload

#define FAMILY_capture DEFINE_HOOK
#include "interpose/hooks/families.h"
