// SPDX-License-Identifier: Apache-2.0
// Graphs as drawings: a file in the language of Graphviz, a cluster for each graph, a child graph's
// within its parent's. What NVIDIA's driver writes into it is not documented; that each node and
// edge is there is.
#include <fstream>
#include <sstream>
#include <string>

#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/exec/graph.h"

using simgpu::Call;
using simgpu::Graph;
using simgpu::GraphNode;
using simgpu::Needs;

namespace {

constexpr unsigned kFlags = (CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS << 1) - 1;

struct Wanted {
  unsigned flags;
  bool operator()(CUgraphDebugDot_flags flag) const {
    return (flags & (static_cast<unsigned>(flag) | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE)) != 0;
  }
};

std::string number(uint64_t value) {
  std::ostringstream text;
  text << "0x" << std::hex << value;
  return text.str();
}

// Overloads for each kind: its name, and what the flags ask for.
std::string describe(const simgpu::EmptyNode&, Wanted) {
  return "EMPTY";
}
std::string describe(const simgpu::KernelNode& node, Wanted wanted) {
  std::string text = "KERNEL\\n" + node.kernel->name();
  if (!wanted(CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS)) return text;
  std::ostringstream shape;
  shape << "\\n<<<" << node.shape.grid[0] << "," << node.shape.grid[1] << "," << node.shape.grid[2]
        << "|" << node.shape.block[0] << "," << node.shape.block[1] << "," << node.shape.block[2]
        << ">>>";
  return text + shape.str();
}
std::string describe(const simgpu::CopyNode& node, Wanted wanted) {
  if (!wanted(CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS)) return "MEMCPY";
  return "MEMCPY\\n" + std::to_string(node.what.WidthInBytes) + " x " +
         std::to_string(node.what.Height) + " x " + std::to_string(node.what.Depth);
}
std::string describe(const simgpu::FillNode& node, Wanted wanted) {
  if (!wanted(CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS)) return "MEMSET";
  return "MEMSET\\n" + number(node.what.dst) + " " + number(node.what.value);
}
std::string describe(const simgpu::HostNode& node, Wanted wanted) {
  if (!wanted(CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS)) return "HOST";
  return "HOST\\n" + number(reinterpret_cast<uintptr_t>(node.function));
}
std::string describe(const simgpu::ChildNode&, Wanted) {
  return "GRAPH";
}
std::string of_event(const char* kind, CUevent event, Wanted wanted) {
  if (!wanted(CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS)) return kind;
  return std::string(kind) + "\\n" + number(reinterpret_cast<uintptr_t>(event));
}
std::string describe(const simgpu::EventRecordNode& node, Wanted wanted) {
  return of_event("EVENT_RECORD", node.event, wanted);
}
std::string describe(const simgpu::EventWaitNode& node, Wanted wanted) {
  return of_event("EVENT_WAIT", node.event, wanted);
}
std::string describe(const simgpu::AllocateNode& node, Wanted wanted) {
  if (!wanted(CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS)) return "MEM_ALLOC";
  return "MEM_ALLOC\\n" + std::to_string(node.what.bytesize);
}
std::string describe(const simgpu::FreeNode& node, Wanted wanted) {
  if (!wanted(CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS)) return "MEM_FREE";
  return "MEM_FREE\\n" + number(node.memory->address);
}
std::string describe(const simgpu::ValuesNode& node, Wanted wanted) {
  if (!wanted(CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS)) return "BATCH_MEM_OP";
  return "BATCH_MEM_OP\\n" + std::to_string(node.ops.size());
}

void print(std::ostream& out, const Graph& graph, Wanted wanted) {
  const std::string name = "graph_" + std::to_string(graph.id);
  const auto quoted = [&](const GraphNode& node) {
    return "\"" + name + "_node_" + std::to_string(node.id) + "\"";
  };
  out << "subgraph cluster_" << graph.id << " {\nlabel=\"" << name
      << "\" graph[style=\"dashed\"];\n";
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = *graph.nodes[i];
    out << quoted(node) << "[shape=\"box\" label=\"" << i << "\\n"
        << std::visit([&](const auto& kind) { return describe(kind, wanted); }, node.parameters);
    if (wanted(CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES)) {
      out << "\\n" << number(reinterpret_cast<uintptr_t>(&node));
    }
    out << "\"];\n";
    if (const auto* child = std::get_if<simgpu::ChildNode>(&node.parameters)) {
      print(out, *child->graph, wanted);
    }
  }
  size_t edge = 0;
  for (const GraphNode* node : graph.nodes) {
    for (const GraphNode* before : node->dependencies) {
      out << quoted(*before) << " -> " << quoted(*node);
      if (wanted(CU_GRAPH_DEBUG_DOT_FLAGS_EXTRA_TOPO_INFO)) out << "[label=\"" << edge << "\"]";
      out << ";\n";
      ++edge;
    }
  }
  out << "}\n";
}

}  // namespace

SIMGPU_API cuGraphDebugDotPrint(CUgraph handle, const char* path, unsigned int flags) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  const Graph* graph = simgpu::graphs::find(handle);
  if (graph == nullptr || path == nullptr || (flags & ~kFlags) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  std::ofstream file(path);
  file << "digraph dot {\n";
  print(file, *graph, Wanted{flags});
  file << "}\n";
  file.flush();
  return file ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
