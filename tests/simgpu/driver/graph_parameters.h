// SPDX-License-Identifier: Apache-2.0
#pragma once
// Between the structs that describe a node in cuda.h and what a node holds. Each reader checks what
// it gets and changes its target only on success. `current`: the context that a null one means.
// Driver's lock.

#include <cuda.h>

#include "tests/simgpu/exec/graph.h"

namespace simgpu {

CUresult read_kernel(const CUDA_KERNEL_NODE_PARAMS_v2& what, Context* current,
                     NodeParameters* node);
CUresult read_kernel(const CUDA_KERNEL_NODE_PARAMS_v1& what, Context* current,
                     NodeParameters* node);
CUresult read_memcpy(const CUDA_MEMCPY3D& what, CUcontext context, Context* current,
                     NodeParameters* node);
CUresult read_memset(const CUDA_MEMSET_NODE_PARAMS& what, CUcontext context, Context* current,
                     NodeParameters* node);
CUresult read_host(CUhostFn function, void* data, NodeParameters* node);
CUresult read_event_record(CUevent event, NodeParameters* node);
CUresult read_event_wait(CUevent event, NodeParameters* node);
CUresult read_values(const CUDA_BATCH_MEM_OP_NODE_PARAMS& what, Context* current,
                     NodeParameters* node);
// The graph is copied into the node (or, with `move`, taken).
CUresult read_child(CUgraph child, const Graph& parent, bool move, NodeParameters* node);
// Chooses the address, and tells it.
CUresult read_allocation(CUDA_MEM_ALLOC_NODE_PARAMS* what, NodeParameters* node);
CUresult read_free(CUdeviceptr address, Graph& graph, NodeParameters* node);
// Any kind but those that own something (a child graph, an allocation, a free).
CUresult read_any(const CUgraphNodeParams& what, Context* current, NodeParameters* node);

// What the pointers in the answer point to belongs to the node.
void write_kernel(GraphNode& node, CUDA_KERNEL_NODE_PARAMS_v2* what);

}  // namespace simgpu
