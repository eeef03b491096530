// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/graph.h"

#include <algorithm>
#include <unordered_map>

#include "tests/simgpu/exec/user_object.h"

namespace simgpu {

CUgraphNodeType node_type(const NodeParameters& parameters) {
  constexpr CUgraphNodeType kTypes[] = {
      CU_GRAPH_NODE_TYPE_EMPTY,        CU_GRAPH_NODE_TYPE_KERNEL,      CU_GRAPH_NODE_TYPE_MEMCPY,
      CU_GRAPH_NODE_TYPE_MEMSET,       CU_GRAPH_NODE_TYPE_HOST,        CU_GRAPH_NODE_TYPE_GRAPH,
      CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_WAIT_EVENT,  CU_GRAPH_NODE_TYPE_MEM_ALLOC,
      CU_GRAPH_NODE_TYPE_MEM_FREE,     CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
  static_assert(std::size(kTypes) == std::variant_size_v<NodeParameters>);
  return kTypes[parameters.index()];
}

bool Graph::has_memory_nodes() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const GraphNode* node) {
    if (const auto* child = std::get_if<ChildNode>(&node->parameters)) {
      return child->graph->has_memory_nodes();
    }
    return std::holds_alternative<AllocateNode>(node->parameters) ||
           std::holds_alternative<FreeNode>(node->parameters);
  });
}

namespace graphs {

namespace {

HandlePool<Graph>& graph_handles() {
  static auto* pool = new HandlePool<Graph>;
  return *pool;
}

HandlePool<GraphNode>& node_handles() {
  static auto* pool = new HandlePool<GraphNode>;
  return *pool;
}

uint64_t new_id() {
  static uint64_t last = 0;
  return ++last;
}

}  // namespace

Graph* create() {
  Graph* graph = graph_handles().create();
  graph->id = new_id();
  return graph;
}

void destroy(Graph* graph) {
  while (!graph->nodes.empty()) destroy_node(graph->nodes.back());
  for (const auto& [object, count] : graph->user_objects) user_objects::release(object, count);
  graph_handles().destroy(graph);
}

Graph* clone(const Graph& graph) {
  Graph* copy = create();
  copy->original = graph.id;
  std::unordered_map<const GraphNode*, GraphNode*> twins;
  for (const GraphNode* node : graph.nodes) {
    NodeParameters parameters = node->parameters;
    if (auto* child = std::get_if<ChildNode>(&parameters)) child->graph = clone(*child->graph);
    GraphNode* twin = add_node(*copy, std::move(parameters), {});
    twin->original = node->id;
    twin->attributes = node->attributes;
    twins[node] = twin;
  }
  for (const GraphNode* node : graph.nodes) {
    for (const GraphNode* before : node->dependencies) add_edge(*twins[before], *twins[node]);
  }
  copy->user_objects = graph.user_objects;
  for (const auto& [object, count] : copy->user_objects) user_objects::retain(object, count);
  return copy;
}

Graph* find(CUgraph handle) {
  return graph_handles().find(handle);
}

GraphNode* find(CUgraphNode handle) {
  return node_handles().find(handle);
}

CUresult check_dependencies(const Graph& graph, const CUgraphNode* dependencies, size_t count) {
  if (count != 0 && dependencies == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const GraphNode* node = find(dependencies[i]);
    if (node == nullptr || node->graph != &graph) return CUDA_ERROR_INVALID_VALUE;
    if (std::find(dependencies, dependencies + i, dependencies[i]) != dependencies + i) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}

GraphNode* add_node(Graph& graph, NodeParameters parameters,
                    const std::vector<GraphNode*>& dependencies) {
  GraphNode* node = node_handles().create();
  node->graph = &graph;
  node->id = new_id();
  node->parameters = std::move(parameters);
  if (auto* child = std::get_if<ChildNode>(&node->parameters)) child->graph->owner = node;
  graph.nodes.push_back(node);
  for (GraphNode* before : dependencies) add_edge(*before, *node);
  return node;
}

void destroy_node(GraphNode* node) {
  while (!node->dependencies.empty()) remove_edge(*node->dependencies.back(), *node);
  while (!node->dependents.empty()) remove_edge(*node, *node->dependents.back());
  if (auto* child = std::get_if<ChildNode>(&node->parameters)) destroy(child->graph);
  std::erase(node->graph->nodes, node);
  node_handles().destroy(node);
}

bool has_edge(const GraphNode& from, const GraphNode& to) {
  return std::find(to.dependencies.begin(), to.dependencies.end(), &from) != to.dependencies.end();
}

void add_edge(GraphNode& from, GraphNode& to) {
  if (has_edge(from, to)) return;
  to.dependencies.push_back(&from);
  from.dependents.push_back(&to);
}

void remove_edge(GraphNode& from, GraphNode& to) {
  std::erase(to.dependencies, &from);
  std::erase(from.dependents, &to);
}

std::vector<GraphNode*> sorted(const Graph& graph) {
  std::unordered_map<const GraphNode*, size_t> open;
  for (const GraphNode* node : graph.nodes) open[node] = node->dependencies.size();
  // By id, so that the order is the same each time.
  std::map<uint64_t, GraphNode*> ready;
  for (GraphNode* node : graph.nodes) {
    if (open[node] == 0) ready[node->id] = node;
  }
  std::vector<GraphNode*> order;
  while (!ready.empty()) {
    GraphNode* node = ready.begin()->second;
    ready.erase(ready.begin());
    order.push_back(node);
    for (GraphNode* after : node->dependents) {
      if (--open[after] == 0) ready[after->id] = after;
    }
  }
  if (order.size() != graph.nodes.size()) order.clear();
  return order;
}

}  // namespace graphs
}  // namespace simgpu
