// SPDX-License-Identifier: Apache-2.0
#pragma once
// The operations that a graph's node becomes each time the graph is launched. Driver's lock.

#include <cuda.h>

#include <memory>
#include <vector>

#include "tests/simgpu/exec/graph.h"
#include "tests/simgpu/exec/op.h"

namespace simgpu {

// None for nodes that only order others. A child graph is no node of an executable graph.
CUresult make_node_ops(const NodeParameters& parameters, std::vector<std::unique_ptr<Op>>* ops);
// Where it runs; null: in the context of the stream that the graph is launched in.
CUcontext node_context(const NodeParameters& parameters);

// Wait, write, flush and barrier operations, checked. NOT_SUPPORTED for kinds that do not exist.
CUresult make_value_ops(const std::vector<CUstreamBatchMemOpParams>& params,
                        std::vector<std::unique_ptr<Op>>* ops);

}  // namespace simgpu
