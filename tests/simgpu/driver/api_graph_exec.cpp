// SPDX-License-Identifier: Apache-2.0
// Executable graphs: instantiation, launch, update.
#include <utility>

#include "tests/simgpu/driver/graph_call.h"
#include "tests/simgpu/driver/graph_parameters.h"
#include "tests/simgpu/exec/capture.h"
#include "tests/simgpu/exec/engine.h"
#include "tests/simgpu/exec/node_ops.h"

using simgpu::Call;
using simgpu::DefaultStream;
using simgpu::engine;
using simgpu::ExecNodeCall;
using simgpu::Graph;
using simgpu::GraphExec;
using simgpu::Needs;
using simgpu::NodeParameters;
namespace graphs = simgpu::graphs;
namespace graph_execs = simgpu::graph_execs;

namespace simgpu {

CUresult ExecNodeCall::set(CUresult read, NodeParameters parameters) {
  if (read != CUDA_SUCCESS) return read;
  if (node->parameters.index() != parameters.index() ||
      node_context(node->parameters) != node_context(parameters)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  node->parameters = std::move(parameters);
  return CUDA_SUCCESS;
}

}  // namespace simgpu

namespace {

constexpr unsigned long long kInstantiateFlags =
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
    CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

CUresult instantiate(Call& call, CUgraphExec* exec, CUgraph handle, unsigned long long flags) {
  if (call.error != CUDA_SUCCESS) return call.error;
  Graph* graph = graphs::find(handle);
  if (exec == nullptr || graph == nullptr || (flags & ~kInstantiateFlags) != 0 ||
      graph->capture != 0 || graph->owner != nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  GraphExec* made = nullptr;
  const CUresult error = graph_execs::create(*graph, flags, &made);
  if (error == CUDA_SUCCESS) *exec = reinterpret_cast<CUgraphExec>(made);
  return error;
}

template <DefaultStream preset>
CUresult instantiate_with_params(CUgraphExec* exec, CUgraph graph,
                                 CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  params->hErrNode_out = nullptr;
  params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  CUresult error = instantiate(call, exec, graph, params->flags);
  if (error == CUDA_ERROR_INVALID_VALUE && graphs::find(graph) != nullptr) {
    params->result_out = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
  }
  if (error != CUDA_SUCCESS) return error;
  if ((params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) {
    GraphExec* made = graph_execs::find(*exec);
    if (call.stream(params->hUploadStream, preset) == nullptr) error = CUDA_ERROR_INVALID_HANDLE;
    if (error == CUDA_SUCCESS) error = graph_execs::upload(*made);
    if (error != CUDA_SUCCESS) {
      graph_execs::destroy(call.lock, made);
      *exec = nullptr;
      return error;
    }
  }
  params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return CUDA_SUCCESS;
}

template <DefaultStream preset>
CUresult launch(CUgraphExec handle, CUstream stream_handle) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  simgpu::Stream* stream = call.stream(stream_handle, preset);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult error = Call::stream_error(*stream); error != CUDA_SUCCESS) return error;
  if (stream->capture == nullptr) engine().make_room(call.lock, *stream);
  GraphExec* exec = graph_execs::find(handle);  // only now: waiting for room lets others in
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture != nullptr) {
    return simgpu::captures::add(*stream, simgpu::ChildNode{graph_execs::as_graph(*exec)});
  }
  return graph_execs::launch(call.lock, *exec, *stream);
}

template <DefaultStream preset>
CUresult upload(CUgraphExec handle, CUstream stream_handle) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  const simgpu::Stream* stream = call.stream(stream_handle, preset);
  GraphExec* exec = graph_execs::find(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult error = Call::wait_error(*stream); error != CUDA_SUCCESS) return error;
  return graph_execs::upload(*exec);
}

CUresult update(CUgraphExec exec_handle, CUgraph graph_handle, CUgraphExecUpdateResult* result,
                CUgraphNode* error_node) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  GraphExec* exec = graph_execs::find(exec_handle);
  const Graph* graph = graphs::find(graph_handle);
  *result = CU_GRAPH_EXEC_UPDATE_ERROR;
  *error_node = nullptr;
  if (exec == nullptr || graph == nullptr || graph->owner != nullptr || graph->capture != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *result = graph_execs::update(*exec, *graph, error_node);
  return *result == CU_GRAPH_EXEC_UPDATE_SUCCESS ? CUDA_SUCCESS
                                                 : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

template <class Params>
CUresult set_kernel(CUgraphExec exec, CUgraphNode node, const Params* what) {
  ExecNodeCall call(exec, node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeParameters parameters;
  const CUresult read = simgpu::read_kernel(*what, call.context, &parameters);
  return call.set(read, std::move(parameters));
}

}  // namespace

SIMGPU_API cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  Call call(Needs::kContext);
  return instantiate(call, exec, graph, flags);
}
SIMGPU_API cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node,
                                 char* log, size_t bytes) {
  Call call(Needs::kContext);
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && bytes != 0) *log = '\0';
  return instantiate(call, exec, graph, 0);
}
SIMGPU_API cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                              size_t bytes) {
  const simgpu::ApiName api_name(__func__);
  return cuGraphInstantiate_v2(exec, graph, error_node, log, bytes);
}

SIMGPU_API cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t* flags) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  const GraphExec* found = graph_execs::find(exec);
  if (found == nullptr || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // UPLOAD concerned the instantiation alone.
  *flags = found->flags & ~static_cast<cuuint64_t>(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphExecDestroy(CUgraphExec exec) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  GraphExec* found = graph_execs::find(exec);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  graph_execs::destroy(call.lock, found);  // what is launched still runs
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph,
                                CUgraphExecUpdateResultInfo* info) {
  const simgpu::ApiName api_name(__func__);
  CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_ERROR;
  CUgraphNode node = nullptr;
  const CUresult error = update(exec, graph, &result, &node);
  if (info != nullptr) *info = {result, node, nullptr};
  return error;
}
SIMGPU_API cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
                             CUgraphExecUpdateResult* result_out) {
  const simgpu::ApiName api_name(__func__);
  CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_ERROR;
  CUgraphNode node = nullptr;
  const CUresult error = update(exec, graph, &result, &node);
  if (error_node != nullptr) *error_node = node;
  if (result_out != nullptr) *result_out = result;
  return error;
}

SIMGPU_API cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                          const CUDA_KERNEL_NODE_PARAMS_v1* what) {
  const simgpu::ApiName api_name(__func__);
  return set_kernel(exec, node, what);
}
SIMGPU_API cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                             const CUDA_KERNEL_NODE_PARAMS_v2* what) {
  const simgpu::ApiName api_name(__func__);
  return set_kernel(exec, node, what);
}
SIMGPU_API cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                          const CUDA_MEMCPY3D* what, CUcontext context) {
  const simgpu::ApiName api_name(__func__);
  ExecNodeCall call(exec, node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeParameters parameters;
  const CUresult read = simgpu::read_memcpy(*what, context, call.context, &parameters);
  return call.set(read, std::move(parameters));
}
SIMGPU_API cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                          const CUDA_MEMSET_NODE_PARAMS* what, CUcontext context) {
  const simgpu::ApiName api_name(__func__);
  ExecNodeCall call(exec, node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeParameters parameters;
  const CUresult read = simgpu::read_memset(*what, context, call.context, &parameters);
  return call.set(read, std::move(parameters));
}
SIMGPU_API cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_HOST_NODE_PARAMS* what) {
  const simgpu::ApiName api_name(__func__);
  ExecNodeCall call(exec, node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeParameters parameters;
  const CUresult read = simgpu::read_host(what->fn, what->userData, &parameters);
  return call.set(read, std::move(parameters));
}
SIMGPU_API cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  const simgpu::ApiName api_name(__func__);
  ExecNodeCall call(exec, node);
  if (call.error != CUDA_SUCCESS) return call.error;
  NodeParameters parameters;
  const CUresult read = simgpu::read_event_record(event, &parameters);
  return call.set(read, std::move(parameters));
}
SIMGPU_API cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  const simgpu::ApiName api_name(__func__);
  ExecNodeCall call(exec, node);
  if (call.error != CUDA_SUCCESS) return call.error;
  NodeParameters parameters;
  const CUresult read = simgpu::read_event_wait(event, &parameters);
  return call.set(read, std::move(parameters));
}
SIMGPU_API cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                              const CUDA_BATCH_MEM_OP_NODE_PARAMS* what) {
  const simgpu::ApiName api_name(__func__);
  ExecNodeCall call(exec, node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeParameters parameters;
  const CUresult read = simgpu::read_values(*what, call.context, &parameters);
  return call.set(read, std::move(parameters));
}
SIMGPU_API cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  GraphExec* found = graph_execs::find(exec);
  const simgpu::GraphNode* at = graphs::find(node);
  const auto* owner = at != nullptr ? std::get_if<simgpu::ChildNode>(&at->parameters) : nullptr;
  const Graph* graph = graphs::find(child);
  if (found == nullptr || owner == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return graph_execs::update_child(*found, *owner->graph, *graph);
}
SIMGPU_API cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* what) {
  const simgpu::ApiName api_name(__func__);
  ExecNodeCall call(exec, node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeParameters parameters;
  const CUresult read = simgpu::read_any(*what, call.context, &parameters);
  return call.set(read, std::move(parameters));
}

SIMGPU_API cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled) {
  const simgpu::ApiName api_name(__func__);
  ExecNodeCall call(exec, node);
  if (call.error != CUDA_SUCCESS) return call.error;
  const CUgraphNodeType type = call.node->type;
  const bool allowed = type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                       type == CU_GRAPH_NODE_TYPE_MEMSET;
  if (!allowed) return CUDA_ERROR_INVALID_VALUE;
  call.node->enabled = enabled != 0;
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int* enabled) {
  const simgpu::ApiName api_name(__func__);
  ExecNodeCall call(exec, node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *enabled = call.node->enabled ? 1 : 0;
  return CUDA_SUCCESS;
}

SIMGPU_STREAM_API(cuGraphInstantiateWithParams, _ptsz, instantiate_with_params,
                  (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params),
                  (exec, graph, params))
SIMGPU_STREAM_API(cuGraphLaunch, _ptsz, launch, (CUgraphExec exec, CUstream s), (exec, s))
SIMGPU_STREAM_API(cuGraphUpload, _ptsz, upload, (CUgraphExec exec, CUstream s), (exec, s))
