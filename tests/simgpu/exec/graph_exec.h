// SPDX-License-Identifier: Apache-2.0
#pragma once
// Executable graphs. An instance is a copy of its graph, child graphs laid open, cut into lanes: a
// node follows a node that it depends on in that one's lane if nothing else does, else it opens a
// lane. Each lane is a stream of its own, and edges between lanes are events, so the executor and
// the checker see operations in streams with exactly the graph's order. Driver's lock.

#include <cuda.h>

#include <memory>
#include <vector>

#include "tests/simgpu/driver/lock.h"
#include "tests/simgpu/exec/graph.h"
#include "tests/simgpu/exec/record.h"

namespace simgpu {

struct Stream;

struct ExecNode {
  uint64_t id = 0;  // of the node that it was made from
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  NodeParameters parameters;
  std::vector<size_t> dependencies;  // earlier nodes of this instance
  bool enabled = true;
  size_t lane = 0;
  bool opens_lane = false;
  bool others_wait = false;  // some node of another lane depends on it, or nothing follows it
};

struct GraphExec {
  Graph* graph = nullptr;  // with allocations only: to count its instances; may be gone
  uint64_t graph_id = 0;
  unsigned long long flags = 0;
  std::vector<ExecNode> nodes;  // each after all that it depends on
  struct Lane {
    CUcontext context = nullptr;
    Stream* stream = nullptr;  // null: not launched yet
  };
  std::vector<Lane> lanes;
  RecordRef last;  // the end of its last launch
  std::map<UserObject*, unsigned> user_objects;
};

namespace graph_execs {

// INVALID_VALUE: it has a cycle. NOT_SUPPORTED: it allocates, and another instance of it lives.
CUresult create(Graph& graph, unsigned long long flags, GraphExec** exec);
void destroy(Lock& lock, GraphExec* exec);
// The context is about to end: its lanes go, and come again in another context.
void leave_context(Lock& lock, const Context* context);
GraphExec* find(CUgraphExec handle);

// The stream must have room (Engine::make_room). Does not block.
CUresult launch(Lock& lock, GraphExec& exec, Stream& stream);
// Puts memory behind what it allocates.
CUresult upload(GraphExec& exec);
// The node of the instance that was made from `node`, or null.
ExecNode* find_node(GraphExec& exec, const GraphNode& node);
// Takes the parameters from a graph of the same shape.
CUgraphExecUpdateResult update(GraphExec& exec, const Graph& graph, CUgraphNode* error_node);
// The same for what stands where that child graph was: INVALID_VALUE if the shapes differ.
CUresult update_child(GraphExec& exec, const Graph& child, const Graph& with);
// A graph with the instance's nodes, as capturing its launch gives.
Graph* as_graph(const GraphExec& exec);

}  // namespace graph_execs
}  // namespace simgpu
