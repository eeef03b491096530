// SPDX-License-Identifier: Apache-2.0
// What the scenarios with captures and graphs share.
#pragma once

#include <type_traits>

#include "tests/clients/client.h"

namespace clients {

// The entries around captures and graphs, as a runtime asks for them.
struct Graphs {
  explicit Graphs(const Client& client) {
    const auto ask = [&](const char* base, auto& entry) {
      entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(client.cuda.other(base));
      CHECK(entry != nullptr);
    };
    ask("cuStreamBeginCapture", begin);
    ask("cuStreamEndCapture", end);
    ask("cuStreamIsCapturing", is_capturing);
    ask("cuThreadExchangeStreamCaptureMode", exchange_mode);
    ask("cuGraphInstantiateWithFlags", instantiate);
    ask("cuGraphLaunch", launch);
    ask("cuGraphExecUpdate", update);
    ask("cuGraphExecDestroy", destroy_exec);
    ask("cuGraphDestroy", destroy);
    ask("cuGraphCreate", create);
    ask("cuGraphClone", clone);
    ask("cuGraphAddKernelNode", add_kernel);
    ask("cuGraphAddMemcpyNode", add_memcpy);
    ask("cuGraphAddMemsetNode", add_memset);
    ask("cuGraphAddChildGraphNode", add_child);
    ask("cuGraphKernelNodeSetParams", set_kernel);
    ask("cuGraphExecKernelNodeSetParams", set_exec_kernel);
  }
  CUgraphExec instance(CUgraph graph) const {
    CUgraphExec exec = nullptr;
    CHECK_CUDA(instantiate(&exec, graph, 0));
    return exec;
  }

  CUresult (*begin)(CUstream, CUstreamCaptureMode);
  CUresult (*end)(CUstream, CUgraph*);
  CUresult (*is_capturing)(CUstream, CUstreamCaptureStatus*);
  CUresult (*exchange_mode)(CUstreamCaptureMode*);
  CUresult (*instantiate)(CUgraphExec*, CUgraph, unsigned long long);
  CUresult (*launch)(CUgraphExec, CUstream);
  CUresult (*update)(CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*);
  CUresult (*destroy_exec)(CUgraphExec);
  CUresult (*destroy)(CUgraph);
  CUresult (*create)(CUgraph*, unsigned);
  CUresult (*clone)(CUgraph*, CUgraph);
  CUresult (*add_kernel)(CUgraphNode*, CUgraph, const CUgraphNode*, size_t,
                         const CUDA_KERNEL_NODE_PARAMS*);
  CUresult (*add_memcpy)(CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const CUDA_MEMCPY3D*,
                         CUcontext);
  CUresult (*add_memset)(CUgraphNode*, CUgraph, const CUgraphNode*, size_t,
                         const CUDA_MEMSET_NODE_PARAMS*, CUcontext);
  CUresult (*add_child)(CUgraphNode*, CUgraph, const CUgraphNode*, size_t, CUgraph);
  CUresult (*set_kernel)(CUgraphNode, const CUDA_KERNEL_NODE_PARAMS*);
  CUresult (*set_exec_kernel)(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS*);
};
inline CUstream new_stream(Client& client, unsigned flags = CU_STREAM_NON_BLOCKING) {
  CUstream stream = nullptr;
  CHECK_CUDA(client.cuda.cuStreamCreate(&stream, flags));
  return stream;
}

inline CUevent new_event(Client& client) {
  CUevent event = nullptr;
  CHECK_CUDA(client.cuda.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  return event;
}

}  // namespace clients
