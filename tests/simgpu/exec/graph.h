// SPDX-License-Identifier: Apache-2.0
#pragma once
// Graphs as the program builds or captures them: nodes with their parameters, and edges. Nothing
// here runs; exec/graph_exec.h makes something that runs of it. Handles are pointers to these
// objects. Driver's lock.

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "tests/simgpu/driver/handle_pool.h"
#include "tests/simgpu/exec/graph_memory.h"
#include "tests/simgpu/exec/name_log.h"
#include "tests/simgpu/module/module.h"

namespace simgpu {

struct Context;
struct Graph;
struct GraphNode;

struct EmptyNode {};
struct KernelNode {
  CUfunction function = nullptr;
  std::shared_ptr<const Image> image;
  const Kernel* kernel = nullptr;
  SimgpuLaunch shape = {};
  std::vector<std::byte> buffer;  // the kernel's parameter buffer
  CUcontext context = nullptr;
  Names names;  // in the buffer, when the node was made
};
struct CopyNode {
  CUDA_MEMCPY3D what = {};
  CUcontext context = nullptr;
  // Through whose eyes each end is seen, of a captured copy that was told contexts (Place::device).
  int to_device = -1;
  int from_device = -1;
};
struct FillNode {
  CUDA_MEMSET_NODE_PARAMS_v2 what = {};
};
struct HostNode {
  CUhostFn function = nullptr;
  void* data = nullptr;
};
struct ChildNode {
  Graph* graph = nullptr;  // owned by the node
};
struct EventRecordNode {
  CUevent event = nullptr;
};
struct EventWaitNode {
  CUevent event = nullptr;
};
struct AllocateNode {
  std::shared_ptr<GraphAllocation> memory;
  CUDA_MEM_ALLOC_NODE_PARAMS what = {};
  std::vector<CUmemAccessDesc> access;
};
struct FreeNode {
  std::shared_ptr<GraphAllocation> memory;
};
struct ValuesNode {
  CUcontext context = nullptr;
  std::vector<CUstreamBatchMemOpParams> ops;
  unsigned flags = 0;
};

using NodeParameters =
    std::variant<EmptyNode, KernelNode, CopyNode, FillNode, HostNode, ChildNode, EventRecordNode,
                 EventWaitNode, AllocateNode, FreeNode, ValuesNode>;
CUgraphNodeType node_type(const NodeParameters& parameters);

struct GraphNode {
  Graph* graph = nullptr;
  uint64_t id = 0;        // never used again
  uint64_t original = 0;  // in a clone: the id of the node that it is a copy of
  NodeParameters parameters;
  std::vector<GraphNode*> dependencies;  // without duplicates
  std::vector<GraphNode*> dependents;
  std::map<int, CUlaunchAttributeValue> attributes;
  std::vector<void*> argument_pointers;  // what a query for the parameters points to
};

struct UserObject;

struct Graph {
  uint64_t id = 0;
  uint64_t original = 0;          // in a clone: the id of the graph that it is a copy of
  std::vector<GraphNode*> nodes;  // in the order of their making
  GraphNode* owner = nullptr;     // a child graph's node
  uint64_t capture = 0;           // the capture that is filling it
  int instances = 0;              // executable graphs made from it that are alive
  std::map<UserObject*, unsigned> user_objects;

  bool has_memory_nodes() const;
};

namespace graphs {

Graph* create();
// With its nodes, and the graphs that these own.
void destroy(Graph* graph);
Graph* clone(const Graph& graph);

Graph* find(CUgraph handle);
GraphNode* find(CUgraphNode handle);

// INVALID_VALUE: a dependency that is none of this graph's, or named twice.
CUresult check_dependencies(const Graph& graph, const CUgraphNode* dependencies, size_t count);
GraphNode* add_node(Graph& graph, NodeParameters parameters,
                    const std::vector<GraphNode*>& dependencies);
void destroy_node(GraphNode* node);
bool has_edge(const GraphNode& from, const GraphNode& to);
void add_edge(GraphNode& from, GraphNode& to);
void remove_edge(GraphNode& from, GraphNode& to);

// Every node after all that it depends on, otherwise in the order of their making. Empty if there
// is a cycle (or no node).
std::vector<GraphNode*> sorted(const Graph& graph);

}  // namespace graphs
}  // namespace simgpu
