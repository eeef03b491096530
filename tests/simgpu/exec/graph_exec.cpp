// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/graph_exec.h"

#include <algorithm>
#include <unordered_map>

#include "tests/simgpu/driver/context.h"
#include "tests/simgpu/driver/objects.h"
#include "tests/simgpu/driver/statistics.h"
#include "tests/simgpu/exec/engine.h"
#include "tests/simgpu/exec/node_ops.h"
#include "tests/simgpu/exec/pool_op.h"
#include "tests/simgpu/exec/user_object.h"

namespace simgpu::graph_execs {

namespace {

HandlePool<GraphExec>& handles() {
  static auto* pool = new HandlePool<GraphExec>;
  return *pool;
}

using Leaves = std::vector<size_t>;

// Appends the nodes; those without dependencies depend on `entry`. Returns those that nothing
// follows. `from`: the handle behind each node, for error reports.
Leaves lay_open(const Graph& graph, const Leaves& entry, std::vector<ExecNode>* nodes,
                std::vector<CUgraphNode>* from) {
  std::unordered_map<const GraphNode*, size_t> place;
  Leaves leaves;
  for (GraphNode* node : graphs::sorted(graph)) {
    ExecNode made;
    made.id = node->id;
    made.type = node_type(node->parameters);
    made.dependencies = node->dependencies.empty() ? entry : Leaves{};
    for (const GraphNode* before : node->dependencies) {
      made.dependencies.push_back(place[before]);
    }
    if (const auto* child = std::get_if<ChildNode>(&node->parameters)) {
      const Leaves ends = lay_open(*child->graph, made.dependencies, nodes, from);
      if (!ends.empty()) made.dependencies = ends;
    } else {
      made.parameters = node->parameters;
    }
    place[node] = nodes->size();
    if (node->dependents.empty()) leaves.push_back(nodes->size());
    nodes->push_back(std::move(made));
    from->push_back(reinterpret_cast<CUgraphNode>(node));
  }
  return leaves;
}

bool all_sorted(const Graph& graph) {
  if (!graph.nodes.empty() && graphs::sorted(graph).empty()) return false;
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), [](const GraphNode* node) {
    const auto* child = std::get_if<ChildNode>(&node->parameters);
    return child == nullptr || all_sorted(*child->graph);
  });
}

void cut_into_lanes(GraphExec& exec) {
  std::vector<size_t> last;  // of each lane
  for (size_t i = 0; i < exec.nodes.size(); ++i) {
    ExecNode& node = exec.nodes[i];
    const CUcontext context = node_context(node.parameters);
    node.opens_lane = true;
    for (size_t before : node.dependencies) {
      const size_t lane = exec.nodes[before].lane;
      CUcontext& theirs = exec.lanes[lane].context;
      if (last[lane] != before || (context != nullptr && theirs != nullptr && theirs != context)) {
        continue;
      }
      if (theirs == nullptr) theirs = context;
      node.lane = lane;
      node.opens_lane = false;
      last[lane] = i;
      break;
    }
    if (node.opens_lane) {
      node.lane = last.size();
      last.push_back(i);
      exec.lanes.push_back({context, nullptr});
    }
    for (size_t before : node.dependencies) {
      if (exec.nodes[before].lane != node.lane) exec.nodes[before].others_wait = true;
    }
  }
  for (size_t end : last) exec.nodes[end].others_wait = true;
}

template <class Visit>
void for_each_allocation(const GraphExec& exec, Visit visit) {
  for (const ExecNode& node : exec.nodes) {
    if (const auto* allocate = std::get_if<AllocateNode>(&node.parameters))
      visit(*allocate->memory);
  }
}

Stream* lane_stream(Lock& lock, GraphExec::Lane& lane, const Stream& launched_in) {
  if (lane.stream != nullptr) return lane.stream;
  auto* context = contexts().find(lane.context);
  if (context == nullptr) context = launched_in.context;
  lane.stream = engine().create_stream(lock, context, CU_STREAM_NON_BLOCKING, launched_in.priority);
  return lane.stream;
}

}  // namespace

CUresult create(Graph& graph, unsigned long long flags, GraphExec** result) {
  if (!all_sorted(graph)) return CUDA_ERROR_INVALID_VALUE;
  const bool memory = graph.has_memory_nodes();
  if (memory && graph.instances > 0) return CUDA_ERROR_NOT_SUPPORTED;
  GraphExec* exec = handles().create();
  exec->graph = memory ? &graph : nullptr;
  exec->graph_id = graph.id;
  exec->flags = flags;
  std::vector<CUgraphNode> from;
  lay_open(graph, {}, &exec->nodes, &from);
  cut_into_lanes(*exec);
  ++graph.instances;
  exec->user_objects = graph.user_objects;
  for (const auto& [object, count] : exec->user_objects) user_objects::retain(object, count);
  *result = exec;
  return CUDA_SUCCESS;
}

void destroy(Lock& lock, GraphExec* exec) {
  for (GraphExec::Lane& lane : exec->lanes) {
    if (lane.stream != nullptr) engine().retire_stream(lock, lane.stream);
  }
  if (exec->graph != nullptr) {
    const Graph* graph = graphs::find(reinterpret_cast<CUgraph>(exec->graph));
    if (graph != nullptr && graph->id == exec->graph_id) --exec->graph->instances;
  }
  for (const auto& [object, count] : exec->user_objects) user_objects::release(object, count);
  handles().destroy(exec);
}

void leave_context(Lock& lock, const Context* context) {
  handles().for_each([&](GraphExec& exec) {
    for (GraphExec::Lane& lane : exec.lanes) {
      if (lane.stream == nullptr || lane.stream->context != context) continue;
      engine().retire_stream(lock, lane.stream);
      lane.stream = nullptr;
    }
  });
}

GraphExec* find(CUgraphExec handle) {
  return handles().find(handle);
}

ExecNode* find_node(GraphExec& exec, const GraphNode& node) {
  for (ExecNode& mine : exec.nodes) {
    if (mine.id == node.id) return &mine;
  }
  return nullptr;
}

CUresult upload(GraphExec& exec) {
  CUresult error = CUDA_SUCCESS;
  for_each_allocation(exec, [&](GraphAllocation& memory) {
    if (error == CUDA_SUCCESS) error = graph_memory::back(memory);
  });
  return error;
}

CUresult launch(Lock& lock, GraphExec& exec, Stream& stream) {
  for (const ExecNode& node : exec.nodes) {
    const CUcontext context = node_context(node.parameters);
    if (context == nullptr) continue;
    const Context* found = contexts().find(context);
    if (found == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (found->sticky != CUDA_SUCCESS) return found->sticky;
  }
  const bool frees = (exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  std::vector<GraphAllocation*> left;
  for_each_allocation(exec, [&](GraphAllocation& memory) {
    if (memory.outstanding) left.push_back(&memory);
  });
  if (!left.empty() && !frees) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult error = upload(exec); error != CUDA_SUCCESS) return error;
  std::vector<std::vector<std::unique_ptr<Op>>> ops(exec.nodes.size());
  for (size_t i = 0; i < exec.nodes.size(); ++i) {
    if (!exec.nodes[i].enabled) continue;
    if (CUresult error = make_node_ops(exec.nodes[i].parameters, &ops[i]); error != CUDA_SUCCESS) {
      return error;
    }
  }
  ++statistics().graph_launches;
  // One launch of an instance after the other.
  if (exec.last != nullptr) {
    engine().add(lock, stream, std::make_unique<WaitOp>(exec.last));
  }
  for (GraphAllocation* memory : left) {
    engine().add(lock, stream,
                 std::make_unique<FreeOp>(memory->address, std::make_shared<Record>()));
    graph_memory::set_outstanding(*memory, false);
  }
  const RecordRef begin = engine().add_point(lock, stream);
  std::vector<RecordRef> done(exec.nodes.size());
  for (size_t i = 0; i < exec.nodes.size(); ++i) {
    ExecNode& node = exec.nodes[i];
    Stream* lane = lane_stream(lock, exec.lanes[node.lane], stream);
    if (node.opens_lane) engine().add(lock, *lane, std::make_unique<WaitOp>(begin));
    for (size_t before : node.dependencies) {
      if (exec.nodes[before].lane != node.lane) {
        engine().add(lock, *lane, std::make_unique<WaitOp>(done[before]));
      }
    }
    for (auto& op : ops[i]) {
      const auto* event = dynamic_cast<const RecordOp*>(op.get());
      const RecordRef record = event != nullptr ? event->record : nullptr;
      const uint64_t number = engine().add(lock, *lane, std::move(op));
      if (record != nullptr) {
        record->stream = lane;
        record->number = number;
      }
    }
    if (node.others_wait) done[i] = engine().add_point(lock, *lane);
    if (const auto* allocate = std::get_if<AllocateNode>(&node.parameters)) {
      graph_memory::set_outstanding(*allocate->memory, true);
    } else if (const auto* free = std::get_if<FreeNode>(&node.parameters)) {
      graph_memory::set_outstanding(*free->memory, false);
    }
  }
  std::vector<size_t> ends(exec.lanes.size());
  for (size_t i = 0; i < exec.nodes.size(); ++i) ends[exec.nodes[i].lane] = i;
  for (size_t end : ends) engine().add(lock, stream, std::make_unique<WaitOp>(done[end]));
  exec.last = engine().add_point(lock, stream);
  for (const ExecNode& node : exec.nodes) {
    if (const auto* allocate = std::get_if<AllocateNode>(&node.parameters)) {
      allocate->memory->last_use = exec.last;
    } else if (const auto* free = std::get_if<FreeNode>(&node.parameters)) {
      free->memory->last_use = exec.last;
    }
  }
  return CUDA_SUCCESS;
}

CUgraphExecUpdateResult update(GraphExec& exec, const Graph& graph, CUgraphNode* error_node) {
  *error_node = nullptr;
  if (!all_sorted(graph)) return CU_GRAPH_EXEC_UPDATE_ERROR;
  std::vector<ExecNode> nodes;
  std::vector<CUgraphNode> from;
  lay_open(graph, {}, &nodes, &from);
  const size_t common = std::min(nodes.size(), exec.nodes.size());
  for (size_t i = 0; i < common; ++i) {
    *error_node = from[i];
    if (nodes[i].dependencies != exec.nodes[i].dependencies) {
      return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    }
    if (nodes[i].type != exec.nodes[i].type) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    if (nodes[i].type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
        nodes[i].type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
      return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
    }
    if (node_context(nodes[i].parameters) != node_context(exec.nodes[i].parameters)) {
      return nodes[i].type == CU_GRAPH_NODE_TYPE_KERNEL
                 ? CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE
                 : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    }
  }
  *error_node = nullptr;
  if (nodes.size() != exec.nodes.size()) {
    if (nodes.size() > common) *error_node = from[common];
    return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    exec.nodes[i].parameters = std::move(nodes[i].parameters);
  }
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUresult update_child(GraphExec& exec, const Graph& child, const Graph& with) {
  std::vector<ExecNode> old_nodes;
  std::vector<ExecNode> new_nodes;
  std::vector<CUgraphNode> from;
  if (!all_sorted(with) || with.has_memory_nodes()) return CUDA_ERROR_INVALID_VALUE;
  lay_open(child, {}, &old_nodes, &from);
  lay_open(with, {}, &new_nodes, &from);
  if (old_nodes.size() != new_nodes.size()) return CUDA_ERROR_INVALID_VALUE;
  std::vector<ExecNode*> places;
  for (size_t i = 0; i < old_nodes.size(); ++i) {
    const auto place =
        std::find_if(exec.nodes.begin(), exec.nodes.end(),
                     [&](const ExecNode& node) { return node.id == old_nodes[i].id; });
    if (place == exec.nodes.end() || new_nodes[i].type != place->type ||
        new_nodes[i].dependencies != old_nodes[i].dependencies ||
        node_context(new_nodes[i].parameters) != node_context(place->parameters)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    places.push_back(&*place);
  }
  for (size_t i = 0; i < places.size(); ++i) {
    places[i]->parameters = std::move(new_nodes[i].parameters);
  }
  return CUDA_SUCCESS;
}

Graph* as_graph(const GraphExec& exec) {
  Graph* graph = graphs::create();
  std::vector<GraphNode*> made;
  for (const ExecNode& node : exec.nodes) {
    std::vector<GraphNode*> dependencies;
    for (size_t before : node.dependencies) dependencies.push_back(made[before]);
    NodeParameters parameters = node.enabled ? node.parameters : NodeParameters{};
    made.push_back(graphs::add_node(*graph, std::move(parameters), dependencies));
  }
  return graph;
}

}  // namespace simgpu::graph_execs
