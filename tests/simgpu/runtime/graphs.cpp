// SPDX-License-Identifier: Apache-2.0
// Capture and graphs. Handles, codes and most structs are the driver's with other names.

#include <cuda_runtime_api.h>

#include "tests/simgpu/runtime/boxes.h"
#include "tests/simgpu/runtime/call.h"
#include "tests/simgpu/runtime/registry.h"

namespace simgpu::runtime {

namespace {

static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));
static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo));
static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS));
static_assert(sizeof(cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS));
static_assert(sizeof(cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS));

template <Flavor flavor>
cudaError_t begin_capture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return with_context([&](const Driver& api) {
    return call(api.cuStreamBeginCapture[flavor], stream, static_cast<CUstreamCaptureMode>(mode));
  });
}

template <Flavor flavor>
cudaError_t begin_capture_to_graph(cudaStream_t stream, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies,
                                   const cudaGraphEdgeData* edges, size_t count,
                                   cudaStreamCaptureMode mode) {
  return with_context([&](const Driver& api) {
    return call(api.cuStreamBeginCaptureToGraph[flavor], stream, graph, dependencies,
                reinterpret_cast<const CUgraphEdgeData*>(edges), count,
                static_cast<CUstreamCaptureMode>(mode));
  });
}

template <Flavor flavor>
cudaError_t end_capture(cudaStream_t stream, cudaGraph_t* graph) {
  return with_context(
      [&](const Driver& api) { return call(api.cuStreamEndCapture[flavor], stream, graph); });
}

template <Flavor flavor>
cudaError_t update_dependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                const cudaGraphEdgeData* edges, size_t count, unsigned flags) {
  return with_context([&](const Driver& api) {
    return call(api.cuStreamUpdateCaptureDependencies[flavor], stream, dependencies,
                reinterpret_cast<const CUgraphEdgeData*>(edges), count, flags);
  });
}

template <Flavor flavor>
cudaError_t instantiate_with_params(cudaGraphExec_t* exec, cudaGraph_t graph,
                                    cudaGraphInstantiateParams* params) {
  return with_context([&](const Driver& api) {
    return call(api.cuGraphInstantiateWithParams[flavor], exec, graph,
                reinterpret_cast<CUDA_GRAPH_INSTANTIATE_PARAMS*>(params));
  });
}

template <Flavor flavor>
cudaError_t launch_graph(cudaGraphExec_t exec, cudaStream_t stream) {
  return with_context(
      [&](const Driver& api) { return call(api.cuGraphLaunch[flavor], exec, stream); });
}

template <Flavor flavor>
cudaError_t upload_graph(cudaGraphExec_t exec, cudaStream_t stream) {
  return with_context(
      [&](const Driver& api) { return call(api.cuGraphUpload[flavor], exec, stream); });
}

cudaError_t instantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return with_context(
      [&](const Driver& api) { return call(api.cuGraphInstantiateWithFlags, exec, graph, flags); });
}

cudaError_t describe_kernel(const cudaKernelNodeParams* from, CUDA_KERNEL_NODE_PARAMS* kernel) {
  if (from == nullptr) return cudaErrorInvalidValue;
  *kernel = {};
  kernel->gridDimX = from->gridDim.x;
  kernel->gridDimY = from->gridDim.y;
  kernel->gridDimZ = from->gridDim.z;
  kernel->blockDimX = from->blockDim.x;
  kernel->blockDimY = from->blockDim.y;
  kernel->blockDimZ = from->blockDim.z;
  kernel->sharedMemBytes = from->sharedMemBytes;
  kernel->kernelParams = from->kernelParams;
  kernel->extra = from->extra;
  return find_kernel(from->func, &kernel->kern);
}

cudaError_t current_context(const Driver& api, CUcontext* context) {
  return call(api.cuCtxGetCurrent, context);
}

cudaError_t add_copy(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                     size_t count, const cudaMemcpy3DParms* parameters) {
  return with_context([&](const Driver& api) {
    CUDA_MEMCPY3D what{};
    CUcontext context = nullptr;
    cudaError_t status = describe_box(parameters, &what);
    if (status == cudaSuccess) status = current_context(api, &context);
    if (status != cudaSuccess) return status;
    return call(api.cuGraphAddMemcpyNode, node, graph, before, count, &what, context);
  });
}

}  // namespace

RUNTIME_PAIR(cudaStreamBeginCapture, _ptsz, (cudaStream_t stream, cudaStreamCaptureMode mode),
             begin_capture, (stream, mode))
RUNTIME_PAIR(cudaStreamBeginCaptureToGraph, _ptsz,
             (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* before,
              const cudaGraphEdgeData* edges, size_t count, cudaStreamCaptureMode mode),
             begin_capture_to_graph, (stream, graph, before, edges, count, mode))
RUNTIME_PAIR(cudaStreamEndCapture, _ptsz, (cudaStream_t stream, cudaGraph_t* graph), end_capture,
             (stream, graph))
RUNTIME_PAIR(cudaStreamUpdateCaptureDependencies, _ptsz,
             (cudaStream_t stream, cudaGraphNode_t* nodes, const cudaGraphEdgeData* edges,
              size_t count, unsigned flags),
             update_dependencies, (stream, nodes, edges, count, flags))
RUNTIME_PAIR(cudaGraphInstantiateWithParams, _ptsz,
             (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams* params),
             instantiate_with_params, (exec, graph, params))
RUNTIME_PAIR(cudaGraphLaunch, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream), launch_graph,
             (exec, stream))
RUNTIME_PAIR(cudaGraphUpload, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream), upload_graph,
             (exec, stream))

RUNTIME_API cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags) {
  return instantiate(exec, graph, flags);
}
RUNTIME_API cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  return instantiate(exec, graph, flags);
}

RUNTIME_API cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* before, size_t count,
                                   const cudaKernelNodeParams* parameters) {
  return with_context([&](const Driver& api) {
    CUDA_KERNEL_NODE_PARAMS kernel{};
    const cudaError_t status = describe_kernel(parameters, &kernel);
    if (status != cudaSuccess) return status;
    return call(api.cuGraphAddKernelNode, node, graph, before, count, &kernel);
  });
}

RUNTIME_API cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                         const cudaKernelNodeParams* parameters) {
  return with_context([&](const Driver& api) {
    CUDA_KERNEL_NODE_PARAMS kernel{};
    const cudaError_t status = describe_kernel(parameters, &kernel);
    return status == cudaSuccess ? call(api.cuGraphKernelNodeSetParams, node, &kernel) : status;
  });
}

RUNTIME_API cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters) {
  return with_context([&](const Driver& api) {
    CUDA_KERNEL_NODE_PARAMS kernel{};
    const cudaError_t status = describe_kernel(parameters, &kernel);
    if (status != cudaSuccess) return status;
    return call(api.cuGraphExecKernelNodeSetParams, exec, node, &kernel);
  });
}

// The function comes back as the driver's handle, which launches take as well.
RUNTIME_API cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* parameters) {
  return with_context([&](const Driver& api) {
    if (parameters == nullptr) return cudaErrorInvalidValue;
    CUDA_KERNEL_NODE_PARAMS kernel{};
    const cudaError_t status = call(api.cuGraphKernelNodeGetParams, node, &kernel);
    if (status != cudaSuccess) return status;
    remember_kernel(reinterpret_cast<CUkernel>(kernel.func));
    *parameters = {};
    parameters->func = kernel.func;
    parameters->gridDim = dim3(kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ);
    parameters->blockDim = dim3(kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ);
    parameters->sharedMemBytes = kernel.sharedMemBytes;
    parameters->kernelParams = kernel.kernelParams;
    return cudaSuccess;
  });
}

RUNTIME_API cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* before, size_t count,
                                   const cudaMemcpy3DParms* parameters) {
  return add_copy(node, graph, before, count, parameters);
}

RUNTIME_API cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* before, size_t count, void* to,
                                     const void* from, size_t bytes, cudaMemcpyKind kind) {
  cudaMemcpy3DParms parameters = {};
  parameters.srcPtr = {const_cast<void*>(from), bytes, bytes, 1};
  parameters.dstPtr = {to, bytes, bytes, 1};
  parameters.extent = {bytes, 1, 1};
  parameters.kind = kind;
  return add_copy(node, graph, before, count, &parameters);
}

RUNTIME_API cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* before, size_t count,
                                   const cudaMemsetParams* parameters) {
  return with_context([&](const Driver& api) {
    if (parameters == nullptr) return cudaErrorInvalidValue;
    const CUDA_MEMSET_NODE_PARAMS what = {to_device(parameters->dst), parameters->pitch,
                                          parameters->value,          parameters->elementSize,
                                          parameters->width,          parameters->height};
    CUcontext context = nullptr;
    const cudaError_t status = current_context(api, &context);
    if (status != cudaSuccess) return status;
    return call(api.cuGraphAddMemsetNode, node, graph, before, count, &what, context);
  });
}

RUNTIME_API cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                 const cudaGraphNode_t* before, size_t count,
                                 const cudaHostNodeParams* parameters) {
  return with_context([&](const Driver& api) {
    return call(api.cuGraphAddHostNode, node, graph, before, count,
                reinterpret_cast<const CUDA_HOST_NODE_PARAMS*>(parameters));
  });
}

RUNTIME_API cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* before, size_t count,
                                     cudaMemAllocNodeParams* parameters) {
  return with_context([&](const Driver& api) {
    return call(api.cuGraphAddMemAllocNode, node, graph, before, count,
                reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS*>(parameters));
  });
}

RUNTIME_API cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                    const cudaGraphNode_t* before, size_t count, void* address) {
  return with_context([&](const Driver& api) {
    return call(api.cuGraphAddMemFreeNode, node, graph, before, count, to_device(address));
  });
}

RUNTIME_API cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* edges, size_t* count) {
  return with_context([&](const Driver& api) {
    return call(api.cuGraphGetEdges, graph, from, to, reinterpret_cast<CUgraphEdgeData*>(edges),
                count);
  });
}

RUNTIME_API cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                         cudaGraphEdgeData* edges, size_t* count) {
  return with_context([&](const Driver& api) {
    return call(api.cuGraphNodeGetDependencies, node, nodes,
                reinterpret_cast<CUgraphEdgeData*>(edges), count);
  });
}

RUNTIME_API cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                           cudaGraphEdgeData* edges, size_t* count) {
  return with_context([&](const Driver& api) {
    return call(api.cuGraphNodeGetDependentNodes, node, nodes,
                reinterpret_cast<CUgraphEdgeData*>(edges), count);
  });
}

RUNTIME_API cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                     size_t count) {
  return with_context([&](const Driver& api) {
    return call(api.cuGraphAddDependencies, graph, from, to,
                reinterpret_cast<const CUgraphEdgeData*>(edges), count);
  });
}

RUNTIME_API cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                        size_t count) {
  return with_context([&](const Driver& api) {
    return call(api.cuGraphRemoveDependencies, graph, from, to,
                reinterpret_cast<const CUgraphEdgeData*>(edges), count);
  });
}

RUNTIME_API cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return with_context([&](const Driver& api) {
    return call(api.cuGraphNodeGetType, node, reinterpret_cast<CUgraphNodeType*>(type));
  });
}

RUNTIME_API cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* info) {
  return with_context([&](const Driver& api) {
    return call(api.cuGraphExecUpdate, exec, graph,
                reinterpret_cast<CUgraphExecUpdateResultInfo*>(info));
  });
}

RUNTIME_API cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                           void* value) {
  return with_context([&](const Driver& api) {
    return call(api.cuDeviceGetGraphMemAttribute, device,
                static_cast<CUgraphMem_attribute>(attribute), value);
  });
}

RUNTIME_API cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                           void* value) {
  return with_context([&](const Driver& api) {
    return call(api.cuDeviceSetGraphMemAttribute, device,
                static_cast<CUgraphMem_attribute>(attribute), value);
  });
}

// Those whose arguments are the driver's own.
#define SAME(name, entry, parameters, ...)                                                \
  RUNTIME_API name parameters {                                                           \
    return with_context([&](const Driver& api) { return call(api.entry, __VA_ARGS__); }); \
  }
SAME(cudaGraphCreate, cuGraphCreate, (cudaGraph_t * graph, unsigned flags), graph, flags)
SAME(cudaGraphDestroy, cuGraphDestroy, (cudaGraph_t graph), graph)
SAME(cudaGraphClone, cuGraphClone, (cudaGraph_t * clone, cudaGraph_t graph), clone, graph)
SAME(cudaGraphNodeFindInClone, cuGraphNodeFindInClone,
     (cudaGraphNode_t * node, cudaGraphNode_t original, cudaGraph_t clone), node, original, clone)
SAME(cudaGraphGetNodes, cuGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count),
     graph, nodes, count)
SAME(cudaGraphGetRootNodes, cuGraphGetRootNodes,
     (cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count), graph, nodes, count)
SAME(cudaGraphDestroyNode, cuGraphDestroyNode, (cudaGraphNode_t node), node)
SAME(cudaGraphAddEmptyNode, cuGraphAddEmptyNode,
     (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* before, size_t count), node,
     graph, before, count)
SAME(cudaGraphAddChildGraphNode, cuGraphAddChildGraphNode,
     (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* before, size_t count,
      cudaGraph_t child),
     node, graph, before, count, child)
SAME(cudaGraphChildGraphNodeGetGraph, cuGraphChildGraphNodeGetGraph,
     (cudaGraphNode_t node, cudaGraph_t* graph), node, graph)
SAME(cudaGraphAddEventRecordNode, cuGraphAddEventRecordNode,
     (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* before, size_t count,
      cudaEvent_t event),
     node, graph, before, count, event)
SAME(cudaGraphAddEventWaitNode, cuGraphAddEventWaitNode,
     (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* before, size_t count,
      cudaEvent_t event),
     node, graph, before, count, event)
SAME(cudaGraphExecDestroy, cuGraphExecDestroy, (cudaGraphExec_t exec), exec)
SAME(cudaGraphNodeSetEnabled, cuGraphNodeSetEnabled,
     (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled), exec, node, enabled)
SAME(cudaGraphNodeGetEnabled, cuGraphNodeGetEnabled,
     (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned* enabled), exec, node, enabled)
SAME(cudaDeviceGraphMemTrim, cuDeviceGraphMemTrim, (int device), device)
SAME(cudaUserObjectCreate, cuUserObjectCreate,
     (cudaUserObject_t * object, void* pointer, cudaHostFn_t destroy, unsigned count,
      unsigned flags),
     object, pointer, destroy, count, flags)
SAME(cudaUserObjectRetain, cuUserObjectRetain, (cudaUserObject_t object, unsigned count), object,
     count)
SAME(cudaUserObjectRelease, cuUserObjectRelease, (cudaUserObject_t object, unsigned count), object,
     count)
SAME(cudaGraphRetainUserObject, cuGraphRetainUserObject,
     (cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags), graph, object,
     count, flags)
SAME(cudaGraphReleaseUserObject, cuGraphReleaseUserObject,
     (cudaGraph_t graph, cudaUserObject_t object, unsigned count), graph, object, count)
#undef SAME

}  // namespace simgpu::runtime
