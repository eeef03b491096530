// SPDX-License-Identifier: Apache-2.0
// Graphs: their making, copying and end, and what can be asked about their shape.
#include <algorithm>

#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/exec/graph.h"

using simgpu::Call;
using simgpu::Graph;
using simgpu::GraphNode;
using simgpu::Needs;
namespace graphs = simgpu::graphs;

namespace {

struct GraphCall : Call {
  explicit GraphCall(CUgraph handle) : Call(Needs::kDriver) {
    if (error != CUDA_SUCCESS) return;
    graph = graphs::find(handle);
    if (graph == nullptr) error = CUDA_ERROR_INVALID_VALUE;
  }
  Graph* graph = nullptr;
};

struct NodeCall : Call {
  explicit NodeCall(CUgraphNode handle) : Call(Needs::kDriver) {
    if (error != CUDA_SUCCESS) return;
    node = graphs::find(handle);
    if (node == nullptr) error = CUDA_ERROR_INVALID_VALUE;
  }
  GraphNode* node = nullptr;
};

CUgraphNode handle(const GraphNode* node) {
  return reinterpret_cast<CUgraphNode>(const_cast<GraphNode*>(node));
}

// Without room for an answer: how many there are. With room for more than there are: the rest is
// null, and the count is what was given.
CUresult give(const std::vector<GraphNode*>& nodes, CUgraphNode* out, CUgraphEdgeData* edges,
              size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (out == nullptr) {
    *count = nodes.size();
    return CUDA_SUCCESS;
  }
  for (size_t i = 0; i < *count; ++i) {
    out[i] = i < nodes.size() ? handle(nodes[i]) : nullptr;
    if (edges != nullptr) edges[i] = {};
  }
  *count = std::min(*count, nodes.size());
  return CUDA_SUCCESS;
}

CUresult get_edges(CUgraph handle_of_graph, CUgraphNode* from, CUgraphNode* to,
                   CUgraphEdgeData* data, size_t* count) {
  GraphCall call(handle_of_graph);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (count == nullptr || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  size_t edge = 0;
  for (const GraphNode* node : call.graph->nodes) {
    for (const GraphNode* before : node->dependencies) {
      if (from != nullptr && edge < *count) {
        from[edge] = handle(before);
        to[edge] = handle(node);
        if (data != nullptr) data[edge] = {};
      }
      ++edge;
    }
  }
  for (size_t i = edge; from != nullptr && i < *count; ++i) from[i] = to[i] = nullptr;
  *count = from == nullptr ? edge : std::min(*count, edge);
  return CUDA_SUCCESS;
}

CUresult get_dependencies(CUgraphNode node, CUgraphNode* out, CUgraphEdgeData* edges,
                          size_t* count) {
  NodeCall call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  return give(call.node->dependencies, out, edges, count);
}

CUresult get_dependents(CUgraphNode node, CUgraphNode* out, CUgraphEdgeData* edges, size_t* count) {
  NodeCall call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  return give(call.node->dependents, out, edges, count);
}

CUresult change_edges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count,
                      bool adding) {
  GraphCall call(graph);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (count != 0 && (from == nullptr || to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  if (!adding && call.graph->has_memory_nodes()) return CUDA_ERROR_NOT_SUPPORTED;
  for (size_t i = 0; i < count; ++i) {
    const GraphNode* a = graphs::find(from[i]);
    const GraphNode* b = graphs::find(to[i]);
    if (a == nullptr || b == nullptr || a->graph != call.graph || b->graph != call.graph ||
        a == b || graphs::has_edge(*a, *b) == adding) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  for (size_t i = 0; i < count; ++i) {
    GraphNode& a = *graphs::find(from[i]);
    GraphNode& b = *graphs::find(to[i]);
    if (adding) {
      graphs::add_edge(a, b);
    } else {
      graphs::remove_edge(a, b);
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

SIMGPU_API cuGraphCreate(CUgraph* graph, unsigned int flags) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (graph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *graph = reinterpret_cast<CUgraph>(graphs::create());
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphDestroy(CUgraph graph) {
  const simgpu::ApiName api_name(__func__);
  GraphCall call(graph);
  if (call.error != CUDA_SUCCESS) return call.error;
  // Child graphs go with their node; one that is being captured into cannot go.
  if (call.graph->owner != nullptr || call.graph->capture != 0) return CUDA_ERROR_INVALID_VALUE;
  graphs::destroy(call.graph);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphClone(CUgraph* clone, CUgraph original) {
  const simgpu::ApiName api_name(__func__);
  GraphCall call(original);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (clone == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (call.graph->has_memory_nodes()) return CUDA_ERROR_NOT_SUPPORTED;
  *clone = reinterpret_cast<CUgraph>(graphs::clone(*call.graph));
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphNodeFindInClone(CUgraphNode* found, CUgraphNode original, CUgraph clone) {
  const simgpu::ApiName api_name(__func__);
  GraphCall call(clone);
  if (call.error != CUDA_SUCCESS) return call.error;
  const GraphNode* wanted = graphs::find(original);
  if (found == nullptr || wanted == nullptr || call.graph->original != wanted->graph->id) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (const GraphNode* node : call.graph->nodes) {
    if (node->original != wanted->id) continue;
    *found = handle(node);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;  // destroyed in the clone
}

SIMGPU_API cuGraphDestroyNode(CUgraphNode node) {
  const simgpu::ApiName api_name(__func__);
  NodeCall call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (call.node->graph->capture != 0) return CUDA_ERROR_INVALID_VALUE;
  if (call.node->graph->has_memory_nodes()) return CUDA_ERROR_NOT_SUPPORTED;
  graphs::destroy_node(call.node);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  const simgpu::ApiName api_name(__func__);
  NodeCall call(node);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = simgpu::node_type(call.node->parameters);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  const simgpu::ApiName api_name(__func__);
  GraphCall call(graph);
  if (call.error != CUDA_SUCCESS) return call.error;
  return give(call.graph->nodes, nodes, nullptr, count);
}

SIMGPU_API cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  const simgpu::ApiName api_name(__func__);
  GraphCall call(graph);
  if (call.error != CUDA_SUCCESS) return call.error;
  std::vector<GraphNode*> roots;
  for (GraphNode* node : call.graph->nodes) {
    if (node->dependencies.empty()) roots.push_back(node);
  }
  return give(roots, nodes, nullptr, count);
}

SIMGPU_API cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  const simgpu::ApiName api_name(__func__);
  return get_edges(graph, from, to, nullptr, count);
}
SIMGPU_API cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                              CUgraphEdgeData* data, size_t* count) {
  const simgpu::ApiName api_name(__func__);
  return get_edges(graph, from, to, data, count);
}
SIMGPU_API cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* out, size_t* count) {
  const simgpu::ApiName api_name(__func__);
  return get_dependencies(node, out, nullptr, count);
}
SIMGPU_API cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* out, CUgraphEdgeData* data,
                                         size_t* count) {
  const simgpu::ApiName api_name(__func__);
  return get_dependencies(node, out, data, count);
}
SIMGPU_API cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* out, size_t* count) {
  const simgpu::ApiName api_name(__func__);
  return get_dependents(node, out, nullptr, count);
}
SIMGPU_API cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* out,
                                           CUgraphEdgeData* data, size_t* count) {
  const simgpu::ApiName api_name(__func__);
  return get_dependents(node, out, data, count);
}
SIMGPU_API cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                  size_t count) {
  const simgpu::ApiName api_name(__func__);
  return change_edges(graph, from, to, count, true);
}
SIMGPU_API cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                     const CUgraphEdgeData*, size_t count) {
  const simgpu::ApiName api_name(__func__);
  return change_edges(graph, from, to, count, true);
}
SIMGPU_API cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                     size_t count) {
  const simgpu::ApiName api_name(__func__);
  return change_edges(graph, from, to, count, false);
}
SIMGPU_API cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from,
                                        const CUgraphNode* to, const CUgraphEdgeData*,
                                        size_t count) {
  const simgpu::ApiName api_name(__func__);
  return change_edges(graph, from, to, count, false);
}
