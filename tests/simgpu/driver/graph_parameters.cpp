// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/driver/graph_parameters.h"

#include <algorithm>

#include "tests/simgpu/driver/copy_request.h"
#include "tests/simgpu/driver/launch_arguments.h"
#include "tests/simgpu/driver/objects.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/exec/node_ops.h"
#include "tests/simgpu/memory/address_space.h"
#include "tests/simgpu/memory/window.h"

namespace simgpu {

namespace {

bool is_device(int device) {
  return device >= 0 && device < options().devices;
}

CUresult choose_context(CUcontext wanted, Context* current, CUcontext* context) {
  *context = wanted != nullptr ? wanted : reinterpret_cast<CUcontext>(current);
  return contexts().find(*context) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

// Device memory that is neither there nor will be when the graph is launched.
bool leads_nowhere(uintptr_t address) {
  return window().contains(address) && address_space().find(address) == nullptr &&
         !graph_memory::holds(address, 1);
}

bool frees(const Graph& graph, const GraphAllocation* memory) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const GraphNode* node) {
    const auto* free = std::get_if<FreeNode>(&node->parameters);
    return free != nullptr && free->memory.get() == memory;
  });
}

bool allocates(const Graph& graph, const GraphAllocation* memory) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const GraphNode* node) {
    const auto* allocate = std::get_if<AllocateNode>(&node->parameters);
    return allocate != nullptr && allocate->memory.get() == memory;
  });
}

}  // namespace

CUresult read_kernel(const CUDA_KERNEL_NODE_PARAMS_v2& what, Context* current,
                     NodeParameters* node) {
  const void* handle = what.func != nullptr ? static_cast<const void*>(what.func)
                                            : static_cast<const void*>(what.kern);
  Function* function = function_handles().find(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  KernelNode kernel;
  CUcontext wanted = what.func != nullptr ? nullptr : what.ctx;
  if (function->code->context != nullptr) {
    wanted = reinterpret_cast<CUcontext>(function->code->context);
  }
  if (CUresult error = choose_context(wanted, current, &kernel.context); error != CUDA_SUCCESS) {
    return error;
  }
  kernel.shape = {{what.gridDimX, what.gridDimY, what.gridDimZ},
                  {what.blockDimX, what.blockDimY, what.blockDimZ},
                  what.sharedMemBytes,
                  0,
                  0,
                  0};
  if (!launch_shape_is_valid(kernel.shape)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult error =
      take_launch_arguments(*function->kernel, what.kernelParams, what.extra, &kernel.buffer);
  if (error != CUDA_SUCCESS) return error;
  kernel.names = names_in(*function->kernel, kernel.buffer);
  kernel.function = reinterpret_cast<CUfunction>(function);
  kernel.image = function->code->image;
  kernel.kernel = function->kernel;
  *node = std::move(kernel);
  return CUDA_SUCCESS;
}

CUresult read_kernel(const CUDA_KERNEL_NODE_PARAMS_v1& what, Context* current,
                     NodeParameters* node) {
  const CUDA_KERNEL_NODE_PARAMS_v2 wide = {
      what.func,         what.gridDimX,  what.gridDimY,  what.gridDimZ,
      what.blockDimX,    what.blockDimY, what.blockDimZ, what.sharedMemBytes,
      what.kernelParams, what.extra,     nullptr,        nullptr};
  return read_kernel(wide, current, node);
}

CUresult read_memcpy(const CUDA_MEMCPY3D& what, CUcontext context, Context* current,
                     NodeParameters* node) {
  CopyNode copy{what, nullptr};
  CopyRequest request;
  if (CUresult error = read_copy(what, &request); error != CUDA_SUCCESS) return error;
  if (leads_nowhere(request.to.address) || leads_nowhere(request.from.address)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (CUresult error = choose_context(context, current, &copy.context); error != CUDA_SUCCESS) {
    return error;
  }
  *node = copy;
  return CUDA_SUCCESS;
}

CUresult read_memset(const CUDA_MEMSET_NODE_PARAMS& what, CUcontext context, Context* current,
                     NodeParameters* node) {
  FillNode fill;
  fill.what = {what.dst,   what.pitch,  what.value, what.elementSize,
               what.width, what.height, nullptr};
  const bool element = what.elementSize == 1 || what.elementSize == 2 || what.elementSize == 4;
  if (!element || what.width == 0 || what.height == 0 || what.dst % what.elementSize != 0 ||
      (what.height > 1 && what.pitch < what.width * what.elementSize) || leads_nowhere(what.dst)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (CUresult error = choose_context(context, current, &fill.what.ctx); error != CUDA_SUCCESS) {
    return error;
  }
  *node = fill;
  return CUDA_SUCCESS;
}

CUresult read_host(CUhostFn function, void* data, NodeParameters* node) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *node = HostNode{function, data};
  return CUDA_SUCCESS;
}

CUresult read_event_record(CUevent event, NodeParameters* node) {
  if (event_handles().find(event) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *node = EventRecordNode{event};
  return CUDA_SUCCESS;
}

CUresult read_event_wait(CUevent event, NodeParameters* node) {
  if (event_handles().find(event) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *node = EventWaitNode{event};
  return CUDA_SUCCESS;
}

CUresult read_values(const CUDA_BATCH_MEM_OP_NODE_PARAMS& what, Context* current,
                     NodeParameters* node) {
  if (what.count != 0 && what.paramArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ValuesNode values;
  values.flags = what.flags;
  values.ops.assign(what.paramArray, what.paramArray + what.count);
  std::vector<std::unique_ptr<Op>> checked;
  if (CUresult error = make_value_ops(values.ops, &checked); error != CUDA_SUCCESS) return error;
  if (CUresult error = choose_context(what.ctx, current, &values.context); error != CUDA_SUCCESS) {
    return error;
  }
  *node = std::move(values);
  return CUDA_SUCCESS;
}

CUresult read_child(CUgraph child, const Graph& parent, bool move, NodeParameters* node) {
  Graph* graph = graphs::find(child);
  if (graph == nullptr || graph == &parent || graph->capture != 0) return CUDA_ERROR_INVALID_VALUE;
  if (move && (graph->owner != nullptr || graph->instances > 0)) return CUDA_ERROR_INVALID_VALUE;
  if (!move && graph->has_memory_nodes()) return CUDA_ERROR_NOT_SUPPORTED;
  *node = ChildNode{move ? graph : graphs::clone(*graph)};
  return CUDA_SUCCESS;
}

CUresult read_allocation(CUDA_MEM_ALLOC_NODE_PARAMS* what, NodeParameters* node) {
  const CUmemPoolProps& pool = what->poolProps;
  if (pool.allocType != CU_MEM_ALLOCATION_TYPE_PINNED || what->bytesize == 0 ||
      pool.handleTypes != CU_MEM_HANDLE_TYPE_NONE ||
      (what->accessDescCount != 0 && what->accessDescs == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (pool.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  if (!is_device(pool.location.id)) return CUDA_ERROR_INVALID_DEVICE;
  AllocateNode made;
  made.access.assign(what->accessDescs, what->accessDescs + what->accessDescCount);
  for (const CUmemAccessDesc& desc : made.access) {
    if (desc.location.type != CU_MEM_LOCATION_TYPE_DEVICE || !is_device(desc.location.id)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  made.memory = graph_memory::create(pool.location.id, what->bytesize, made.access);
  if (made.memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  what->dptr = made.memory->address;
  made.what = *what;
  *node = std::move(made);
  return CUDA_SUCCESS;
}

CUresult read_free(CUdeviceptr address, Graph& graph, NodeParameters* node) {
  auto memory = graph_memory::find(address);
  if (memory == nullptr || frees(graph, memory.get())) return CUDA_ERROR_INVALID_VALUE;
  const bool own = allocates(graph, memory.get());
  if (own ? memory->freed_elsewhere : memory->freed_in_owner) return CUDA_ERROR_INVALID_VALUE;
  (own ? memory->freed_in_owner : memory->freed_elsewhere) = true;
  *node = FreeNode{std::move(memory)};
  return CUDA_SUCCESS;
}

CUresult read_any(const CUgraphNodeParams& what, Context* current, NodeParameters* node) {
  switch (what.type) {
    case CU_GRAPH_NODE_TYPE_EMPTY:
      *node = EmptyNode{};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const CUDA_KERNEL_NODE_PARAMS_v3& k = what.kernel;
      const CUDA_KERNEL_NODE_PARAMS_v2 same = {
          k.func,      k.gridDimX,       k.gridDimY,     k.gridDimZ, k.blockDimX, k.blockDimY,
          k.blockDimZ, k.sharedMemBytes, k.kernelParams, k.extra,    k.kern,      k.ctx};
      return read_kernel(same, current, node);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return read_memcpy(what.memcpy.copyParams, what.memcpy.copyCtx, current, node);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS_v2& m = what.memset;
      return read_memset({m.dst, m.pitch, m.value, m.elementSize, m.width, m.height}, m.ctx,
                         current, node);
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      return read_host(what.host.fn, what.host.userData, node);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return read_event_record(what.eventRecord.event, node);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return read_event_wait(what.eventWait.event, node);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2& b = what.memOp;
      return read_values({b.ctx, b.count, b.paramArray, b.flags}, current, node);
    }
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

void write_kernel(GraphNode& node, CUDA_KERNEL_NODE_PARAMS_v2* what) {
  auto& kernel = std::get<KernelNode>(node.parameters);
  node.argument_pointers.clear();
  for (const KernelParameter& parameter : kernel.kernel->parameters()) {
    node.argument_pointers.push_back(kernel.buffer.data() + parameter.offset);
  }
  *what = {kernel.function,
           kernel.shape.grid[0],
           kernel.shape.grid[1],
           kernel.shape.grid[2],
           kernel.shape.block[0],
           kernel.shape.block[1],
           kernel.shape.block[2],
           kernel.shape.shared_bytes,
           node.argument_pointers.data(),
           nullptr,
           nullptr,
           kernel.context};
}

}  // namespace simgpu
