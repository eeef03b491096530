// SPDX-License-Identifier: Apache-2.0
#pragma once
// The prologues of entries that concern one node, of a graph or of an executable graph.

#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/exec/graph.h"
#include "tests/simgpu/exec/graph_exec.h"

namespace simgpu {

// `kind` is what the node must be; nothing else than its parameters may be looked at.
template <class Kind>
struct NodeOf : Call {
  explicit NodeOf(CUgraphNode handle) : Call(Needs::kDriver) {
    if (error != CUDA_SUCCESS) return;
    node = graphs::find(handle);
    if (node != nullptr) kind = std::get_if<Kind>(&node->parameters);
    if (kind == nullptr) error = CUDA_ERROR_INVALID_VALUE;
  }
  GraphNode* node = nullptr;
  Kind* kind = nullptr;
};

struct ExecNodeCall : Call {
  ExecNodeCall(CUgraphExec exec_handle, CUgraphNode node_handle) : Call(Needs::kDriver) {
    if (error != CUDA_SUCCESS) return;
    exec = graph_execs::find(exec_handle);
    const GraphNode* found = graphs::find(node_handle);
    if (exec != nullptr && found != nullptr) node = graph_execs::find_node(*exec, *found);
    if (node == nullptr) error = CUDA_ERROR_INVALID_VALUE;
  }
  GraphExec* exec = nullptr;
  ExecNode* node = nullptr;

  // Takes what a reader made, if it is of the node's kind and stays in its context.
  CUresult set(CUresult read, NodeParameters parameters);
};

}  // namespace simgpu
