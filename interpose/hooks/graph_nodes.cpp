// SPDX-License-Identifier: Apache-2.0
// Nodes that the program makes by hand, or gives other parameters: what they name.

#include "interpose/hooks/define.h"
#include "interpose/hooks/kernel_names.h"
#include "interpose/hooks/node_names.h"

namespace offload {
namespace {

// As operate(), for a node: a new one, one of an instance, or of whatever graph it is in.
template <Entry E, typename Node, typename Name, typename... Arguments>
CUresult record(Node node, Name&& name, Arguments... arguments) {
  Session* active = session();
  if (active == nullptr) return real<E>()(arguments...);
  Operation operation(*active);
  operation.record_for(node);
  if (const CUresult wrong = name(operation); wrong != CUDA_SUCCESS) return wrong;
  if (const CUresult refused = operation.begin(nullptr, false); refused != CUDA_SUCCESS)
    return refused;
  return operation.end(with_device_memory(0, [&] { return real<E>()(arguments...); }));
}

template <typename Parameters>
CUresult name_kernel(Operation& operation, const Parameters* node) {
  if (node == nullptr) return CUDA_SUCCESS;  // the driver refuses it
  CUfunction function = node->func;
  if constexpr (requires { node->kern; }) {
    if (function == nullptr) function = reinterpret_cast<CUfunction>(node->kern);
  }
  return name_arguments(operation, function, node->kernelParams, node->extra, nullptr);
}

template <typename Parameters>
CUresult name_set(Operation& operation, const Parameters* node) {
  if (node == nullptr) return CUDA_SUCCESS;
  return name_fill(operation, node->dst, node->width * node->elementSize,
                   node->height > 1 ? node->pitch : 0, node->height);
}

template <typename Parameters>
CUresult name_batch(Operation& operation, const Parameters* node) {
  if (node == nullptr || node->paramArray == nullptr) return CUDA_SUCCESS;
  if (name_memory_operations(operation, node->paramArray, node->count)) operation.may_wait();
  return CUDA_SUCCESS;
}

CUresult name_wait(Operation& operation) {
  operation.may_wait();
  return CUDA_SUCCESS;
}

// Its nodes are made later, by ways that are not followed.
void has_bodies() {
  give_up(Reason::unknown_entry, "the program makes graphs with conditional nodes");
}

CUresult name_node(Operation& operation, const CUgraphNodeParams* node) {
  if (node == nullptr) return CUDA_SUCCESS;
  switch (node->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return name_kernel(operation, &node->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return name_copy(operation, &node->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return name_set(operation, &node->memset);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return name_batch(operation, &node->memOp);
    case CU_GRAPH_NODE_TYPE_HOST:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
      return name_wait(operation);
    case CU_GRAPH_NODE_TYPE_GRAPH:  // what it holds is added behind the call
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return CUDA_SUCCESS;
    default:
      has_bodies();
      return CUDA_SUCCESS;
  }
}

// The embedded graph is the child's copy, or the child itself.
template <typename Owner>
void set_child(Owner owner, CUgraphNode node, const CUgraphNodeParams& parameters) {
  Session* active = session();
  if (active == nullptr || parameters.type != CU_GRAPH_NODE_TYPE_GRAPH) return;
  active->graphs.set(owner, node, parameters.graph.graph);
  if (parameters.graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
    active->graphs.embedded(parameters.graph.graph);
}

}  // namespace

template <Entry E, typename Parameters>
CUresult add_kernel_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                         size_t count, const Parameters* parameters) {
  return record<E>(
      NewNode{graph, node},
      [=](Operation& operation) { return name_kernel(operation, parameters); }, node, graph,
      dependencies, count, parameters);
}
template <Entry E, typename Parameters>
CUresult set_kernel_node(CUgraphNode node, const Parameters* parameters) {
  return record<E>(
      node, [=](Operation& operation) { return name_kernel(operation, parameters); }, node,
      parameters);
}
template <Entry E, typename Parameters>
CUresult set_exec_kernel_node(CUgraphExec exec, CUgraphNode node, const Parameters* parameters) {
  return record<E>(
      InstanceNode{exec, node},
      [=](Operation& operation) { return name_kernel(operation, parameters); }, exec, node,
      parameters);
}

template <Entry E>
CUresult add_memcpy_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                         size_t count, const CUDA_MEMCPY3D* copy, CUcontext context) {
  return record<E>(
      NewNode{graph, node}, [=](Operation& operation) { return name_copy(operation, copy); }, node,
      graph, dependencies, count, copy, context);
}
template <Entry E>
CUresult set_memcpy_node(CUgraphNode node, const CUDA_MEMCPY3D* copy) {
  return record<E>(
      node, [=](Operation& operation) { return name_copy(operation, copy); }, node, copy);
}
template <Entry E>
CUresult set_exec_memcpy_node(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* copy,
                              CUcontext context) {
  return record<E>(
      InstanceNode{exec, node}, [=](Operation& operation) { return name_copy(operation, copy); },
      exec, node, copy, context);
}

template <Entry E>
CUresult add_memset_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                         size_t count, const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext context) {
  return record<E>(
      NewNode{graph, node}, [=](Operation& operation) { return name_set(operation, fill); }, node,
      graph, dependencies, count, fill, context);
}
template <Entry E>
CUresult set_memset_node(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* fill) {
  return record<E>(
      node, [=](Operation& operation) { return name_set(operation, fill); }, node, fill);
}
template <Entry E>
CUresult set_exec_memset_node(CUgraphExec exec, CUgraphNode node,
                              const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext context) {
  return record<E>(
      InstanceNode{exec, node}, [=](Operation& operation) { return name_set(operation, fill); },
      exec, node, fill, context);
}

template <Entry E>
CUresult add_batch_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                        size_t count, const CUDA_BATCH_MEM_OP_NODE_PARAMS* batch) {
  return record<E>(
      NewNode{graph, node}, [=](Operation& operation) { return name_batch(operation, batch); },
      node, graph, dependencies, count, batch);
}
template <Entry E>
CUresult set_batch_node(CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS* batch) {
  return record<E>(
      node, [=](Operation& operation) { return name_batch(operation, batch); }, node, batch);
}
template <Entry E>
CUresult set_exec_batch_node(CUgraphExec exec, CUgraphNode node,
                             const CUDA_BATCH_MEM_OP_NODE_PARAMS* batch) {
  return record<E>(
      InstanceNode{exec, node}, [=](Operation& operation) { return name_batch(operation, batch); },
      exec, node, batch);
}

template <Entry E>
CUresult set_kernel_node_attribute(CUgraphNode node, CUkernelNodeAttrID which,
                                   const CUkernelNodeAttrValue* value) {
  if (session() != nullptr) look_for_device_updates(which);
  return real<E>()(node, which, value);
}

// Nodes that wait for the host, or for another device.
template <Entry E, typename Parameters>
CUresult add_waiting_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                          size_t count, const Parameters* parameters) {
  return record<E>(NewNode{graph, node}, &name_wait, node, graph, dependencies, count, parameters);
}

template <Entry E>
CUresult add_child_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                        size_t count, CUgraph child) {
  const CUresult result = real<E>()(node, graph, dependencies, count, child);
  Session* active = session();
  if (result == CUDA_SUCCESS && active != nullptr) active->graphs.set(graph, *node, child);
  return result;
}
template <Entry E>
CUresult child_node_graph(CUgraphNode node, CUgraph* graph) {
  const CUresult result = real<E>()(node, graph);
  Session* active = session();
  if (result == CUDA_SUCCESS && active != nullptr && graph != nullptr)
    active->graphs.embedded(*graph);
  return result;
}
template <Entry E>
CUresult set_exec_child_node(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  const CUresult result = real<E>()(exec, node, child);
  Session* active = session();
  if (result == CUDA_SUCCESS && active != nullptr) active->graphs.set(exec, node, child);
  return result;
}

template <Entry E>
CUresult add_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                  CUgraphNodeParams* parameters) {
  const CUresult result = record<E>(
      NewNode{graph, node}, [=](Operation& operation) { return name_node(operation, parameters); },
      node, graph, dependencies, count, parameters);
  if (result == CUDA_SUCCESS) set_child(graph, *node, *parameters);
  return result;
}
template <Entry E>
CUresult add_node_with_edges(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                             const CUgraphEdgeData* edges, size_t count,
                             CUgraphNodeParams* parameters) {
  const CUresult result = record<E>(
      NewNode{graph, node}, [=](Operation& operation) { return name_node(operation, parameters); },
      node, graph, dependencies, edges, count, parameters);
  if (result == CUDA_SUCCESS) set_child(graph, *node, *parameters);
  return result;
}
template <Entry E>
CUresult set_node(CUgraphNode node, CUgraphNodeParams* parameters) {
  return record<E>(
      node, [=](Operation& operation) { return name_node(operation, parameters); }, node,
      parameters);
}
template <Entry E>
CUresult set_exec_node(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* parameters) {
  const CUresult result = record<E>(
      InstanceNode{exec, node},
      [=](Operation& operation) { return name_node(operation, parameters); }, exec, node,
      parameters);
  if (result == CUDA_SUCCESS) set_child(exec, node, *parameters);
  return result;
}

}  // namespace offload

#define FAMILY_graph_nodes DEFINE_HOOK
#include "interpose/hooks/families.h"
