// SPDX-License-Identifier: Apache-2.0
// Nodes of graphs: adding them, and their parameters.
#include <cstring>
#include <utility>

#include "tests/simgpu/driver/graph_call.h"
#include "tests/simgpu/driver/graph_parameters.h"

using simgpu::Call;
using simgpu::Graph;
using simgpu::GraphNode;
using simgpu::Needs;
using simgpu::NodeOf;
using simgpu::NodeParameters;
namespace graphs = simgpu::graphs;

namespace {

// `read(call, graph, &parameters)` makes the parameters, once everything else is known to be right.
template <class Read>
CUresult add(CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, size_t count,
             Read read) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  Graph* graph = graphs::find(handle);
  if (out == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = graphs::check_dependencies(*graph, dependencies, count);
  if (error != CUDA_SUCCESS) return error;
  NodeParameters parameters;
  error = read(call, *graph, &parameters);
  if (error != CUDA_SUCCESS) return error;
  std::vector<GraphNode*> before;
  for (size_t i = 0; i < count; ++i) before.push_back(graphs::find(dependencies[i]));
  *out = reinterpret_cast<CUgraphNode>(graphs::add_node(*graph, std::move(parameters), before));
  return CUDA_SUCCESS;
}

template <class Params>
CUresult add_kernel(CUgraphNode* out, CUgraph graph, const CUgraphNode* before, size_t count,
                    const Params* what) {
  return add(out, graph, before, count, [&](Call& call, Graph&, NodeParameters* parameters) {
    if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return simgpu::read_kernel(*what, call.context, parameters);
  });
}

template <class Params>
CUresult set_kernel(CUgraphNode node, const Params* what) {
  NodeOf<simgpu::KernelNode> call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::read_kernel(*what, call.context, &call.node->parameters);
}

CUresult add_any(CUgraphNode* out, CUgraph graph, const CUgraphNode* before, size_t count,
                 CUgraphNodeParams* what) {
  return add(out, graph, before, count, [&](Call& call, Graph& into, NodeParameters* parameters) {
    if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (what->type == CU_GRAPH_NODE_TYPE_GRAPH) {
      const bool move = what->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
      return simgpu::read_child(what->graph.graph, into, move, parameters);
    }
    if (what->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
      return simgpu::read_free(what->free.dptr, into, parameters);
    }
    if (what->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
      CUDA_MEM_ALLOC_NODE_PARAMS same = {what->alloc.poolProps, what->alloc.accessDescs,
                                         what->alloc.accessDescCount, what->alloc.bytesize, 0};
      const CUresult error = simgpu::read_allocation(&same, parameters);
      if (error == CUDA_SUCCESS) what->alloc.dptr = same.dptr;
      return error;
    }
    return simgpu::read_any(*what, call.context, parameters);
  });
}

}  // namespace

SIMGPU_API cuGraphAddEmptyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                               size_t count) {
  const simgpu::ApiName api_name(__func__);
  return add(out, graph, before, count,
             [](Call&, Graph&, NodeParameters*) { return CUDA_SUCCESS; });
}

SIMGPU_API cuGraphAddKernelNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                                size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* what) {
  const simgpu::ApiName api_name(__func__);
  return add_kernel(out, graph, before, count, what);
}
SIMGPU_API cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                                   size_t count, const CUDA_KERNEL_NODE_PARAMS_v2* what) {
  const simgpu::ApiName api_name(__func__);
  return add_kernel(out, graph, before, count, what);
}
SIMGPU_API cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* what) {
  const simgpu::ApiName api_name(__func__);
  return set_kernel(node, what);
}
SIMGPU_API cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* what) {
  const simgpu::ApiName api_name(__func__);
  return set_kernel(node, what);
}
SIMGPU_API cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2* what) {
  const simgpu::ApiName api_name(__func__);
  NodeOf<simgpu::KernelNode> call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  simgpu::write_kernel(*call.node, what);
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* what) {
  const simgpu::ApiName api_name(__func__);
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_KERNEL_NODE_PARAMS_v2 wide = {};
  const CUresult error = cuGraphKernelNodeGetParams_v2(node, &wide);
  // The newer struct is the older one with more at its end.
  if (error == CUDA_SUCCESS) std::memcpy(what, &wide, sizeof *what);
  return error;
}

SIMGPU_API cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  const simgpu::ApiName api_name(__func__);
  NodeOf<simgpu::KernelNode> call(to);
  if (call.error != CUDA_SUCCESS) return call.error;
  const GraphNode* source = graphs::find(from);
  if (source == nullptr || !std::holds_alternative<simgpu::KernelNode>(source->parameters)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  call.node->attributes = source->attributes;
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                         CUkernelNodeAttrValue* value) {
  const simgpu::ApiName api_name(__func__);
  NodeOf<simgpu::KernelNode> call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto it = call.node->attributes.find(attribute);
  *value = it != call.node->attributes.end() ? it->second : CUkernelNodeAttrValue{};
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                         const CUkernelNodeAttrValue* value) {
  const simgpu::ApiName api_name(__func__);
  NodeOf<simgpu::KernelNode> call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  call.node->attributes[attribute] = *value;
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                                size_t count, const CUDA_MEMCPY3D* what, CUcontext context) {
  const simgpu::ApiName api_name(__func__);
  return add(out, graph, before, count, [&](Call& call, Graph&, NodeParameters* parameters) {
    if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return simgpu::read_memcpy(*what, context, call.context, parameters);
  });
}
SIMGPU_API cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* what) {
  const simgpu::ApiName api_name(__func__);
  NodeOf<simgpu::CopyNode> call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *what = call.kind->what;
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* what) {
  const simgpu::ApiName api_name(__func__);
  NodeOf<simgpu::CopyNode> call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::read_memcpy(*what, call.kind->context, nullptr, &call.node->parameters);
}

SIMGPU_API cuGraphAddMemsetNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                                size_t count, const CUDA_MEMSET_NODE_PARAMS* what,
                                CUcontext context) {
  const simgpu::ApiName api_name(__func__);
  return add(out, graph, before, count, [&](Call& call, Graph&, NodeParameters* parameters) {
    if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return simgpu::read_memset(*what, context, call.context, parameters);
  });
}
SIMGPU_API cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* what) {
  const simgpu::ApiName api_name(__func__);
  NodeOf<simgpu::FillNode> call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto& mine = call.kind->what;
  *what = {mine.dst, mine.pitch, mine.value, mine.elementSize, mine.width, mine.height};
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* what) {
  const simgpu::ApiName api_name(__func__);
  NodeOf<simgpu::FillNode> call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::read_memset(*what, call.kind->what.ctx, nullptr, &call.node->parameters);
}

SIMGPU_API cuGraphAddHostNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                              size_t count, const CUDA_HOST_NODE_PARAMS* what) {
  const simgpu::ApiName api_name(__func__);
  return add(out, graph, before, count, [&](Call&, Graph&, NodeParameters* parameters) {
    if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return simgpu::read_host(what->fn, what->userData, parameters);
  });
}
SIMGPU_API cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* what) {
  const simgpu::ApiName api_name(__func__);
  NodeOf<simgpu::HostNode> call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *what = {call.kind->function, call.kind->data};
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* what) {
  const simgpu::ApiName api_name(__func__);
  NodeOf<simgpu::HostNode> call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::read_host(what->fn, what->userData, &call.node->parameters);
}

SIMGPU_API cuGraphAddChildGraphNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                                    size_t count, CUgraph child) {
  const simgpu::ApiName api_name(__func__);
  return add(out, graph, before, count, [&](Call&, Graph& into, NodeParameters* parameters) {
    return simgpu::read_child(child, into, false, parameters);
  });
}
SIMGPU_API cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
  const simgpu::ApiName api_name(__func__);
  NodeOf<simgpu::ChildNode> call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *graph = reinterpret_cast<CUgraph>(call.kind->graph);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphAddEventRecordNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                                     size_t count, CUevent event) {
  const simgpu::ApiName api_name(__func__);
  return add(out, graph, before, count, [&](Call&, Graph&, NodeParameters* parameters) {
    return simgpu::read_event_record(event, parameters);
  });
}
SIMGPU_API cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  const simgpu::ApiName api_name(__func__);
  NodeOf<simgpu::EventRecordNode> call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *event = call.kind->event;
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  const simgpu::ApiName api_name(__func__);
  NodeOf<simgpu::EventRecordNode> call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  return simgpu::read_event_record(event, &call.node->parameters);
}

SIMGPU_API cuGraphAddEventWaitNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                                   size_t count, CUevent event) {
  const simgpu::ApiName api_name(__func__);
  return add(out, graph, before, count, [&](Call&, Graph&, NodeParameters* parameters) {
    return simgpu::read_event_wait(event, parameters);
  });
}
SIMGPU_API cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  const simgpu::ApiName api_name(__func__);
  NodeOf<simgpu::EventWaitNode> call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *event = call.kind->event;
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  const simgpu::ApiName api_name(__func__);
  NodeOf<simgpu::EventWaitNode> call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  return simgpu::read_event_wait(event, &call.node->parameters);
}

SIMGPU_API cuGraphAddBatchMemOpNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                                    size_t count, const CUDA_BATCH_MEM_OP_NODE_PARAMS* what) {
  const simgpu::ApiName api_name(__func__);
  return add(out, graph, before, count, [&](Call& call, Graph&, NodeParameters* parameters) {
    if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return simgpu::read_values(*what, call.context, parameters);
  });
}
SIMGPU_API cuGraphBatchMemOpNodeGetParams(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS* what) {
  const simgpu::ApiName api_name(__func__);
  NodeOf<simgpu::ValuesNode> call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *what = {call.kind->context, static_cast<unsigned>(call.kind->ops.size()), call.kind->ops.data(),
           call.kind->flags};
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphBatchMemOpNodeSetParams(CUgraphNode node,
                                          const CUDA_BATCH_MEM_OP_NODE_PARAMS* what) {
  const simgpu::ApiName api_name(__func__);
  NodeOf<simgpu::ValuesNode> call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::read_values(*what, call.context, &call.node->parameters);
}

SIMGPU_API cuGraphAddMemAllocNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                                  size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* what) {
  const simgpu::ApiName api_name(__func__);
  return add(out, graph, before, count, [&](Call&, Graph&, NodeParameters* parameters) {
    if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return simgpu::read_allocation(what, parameters);
  });
}
SIMGPU_API cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* what) {
  const simgpu::ApiName api_name(__func__);
  NodeOf<simgpu::AllocateNode> call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *what = call.kind->what;
  what->accessDescs = call.kind->access.data();
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphAddMemFreeNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                                 size_t count, CUdeviceptr address) {
  const simgpu::ApiName api_name(__func__);
  return add(out, graph, before, count, [&](Call&, Graph& into, NodeParameters* parameters) {
    return simgpu::read_free(address, into, parameters);
  });
}
SIMGPU_API cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* address) {
  const simgpu::ApiName api_name(__func__);
  NodeOf<simgpu::FreeNode> call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *address = call.kind->memory->address;
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphAddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before, size_t count,
                          CUgraphNodeParams* what) {
  const simgpu::ApiName api_name(__func__);
  return add_any(out, graph, before, count, what);
}
SIMGPU_API cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                             const CUgraphEdgeData*, size_t count, CUgraphNodeParams* what) {
  const simgpu::ApiName api_name(__func__);
  return add_any(out, graph, before, count, what);
}
SIMGPU_API cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* what) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  GraphNode* found = graphs::find(node);
  if (found == nullptr || what == nullptr || simgpu::node_type(found->parameters) != what->type) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return simgpu::read_any(*what, call.context, &found->parameters);
}
