// SPDX-License-Identifier: Apache-2.0
// Entries as older programs know them do what the newer ones do (CUDA Driver API reference,
// cuGetProcAddress: "the driver symbol of the requested CUDA version").
#include <cstring>
#include <string>

#include "tests/simgpu/tests/support/graphs.h"
#include "tests/simgpu/tests/support/older.h"

namespace simgpu::test {
namespace {

constexpr uint32_t kWords = kGraphWords;

TEST(OlderEntries, Contexts) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    CUcontext context = nullptr;
    CU(OLDER(cuCtxCreate, 3020)(&context, CU_CTX_SCHED_YIELD, 0));
    unsigned flags = 0;
    CU(cuCtxGetFlags(&flags));
    EXPECT_EQ(flags, static_cast<unsigned>(CU_CTX_SCHED_YIELD));
    CUcontext popped = nullptr;
    CU(OLDER(cuCtxPopCurrent, 2000)(&popped));
    EXPECT_EQ(popped, context);
    CUcontext current = nullptr;
    CU(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, gpu.context);
    CU(OLDER(cuCtxPushCurrent, 2000)(context));
    CUstream stream = new_stream();
    CUevent event = new_event(CU_EVENT_DEFAULT);
    CUevent other = new_event(CU_EVENT_DEFAULT);
    CU(cuEventRecord(event, stream));
    CU(cuEventRecord(other, stream));
    CU(cuStreamSynchronize(stream));
    float milliseconds = -1;
    CU(OLDER(cuEventElapsedTime, 2000)(&milliseconds, event, other));
    EXPECT_GE(milliseconds, 0);
    CU(OLDER(cuEventDestroy, 2000)(event));
    EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
    CU(OLDER(cuStreamDestroy, 2000)(stream));
    EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
    CU(OLDER(cuCtxDestroy, 2000)(context));
    EXPECT_EQ(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
    CU(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, gpu.context);
  }));
}

TEST(OlderEntries, PrimaryContexts) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    CU(OLDER(cuDevicePrimaryCtxSetFlags, 7000)(0, CU_CTX_SCHED_SPIN));
    unsigned flags = 0;
    int active = 0;
    CU(cuDevicePrimaryCtxGetState(0, &flags, &active));
    EXPECT_EQ(flags, static_cast<unsigned>(CU_CTX_SCHED_SPIN));
    CU(OLDER(cuDevicePrimaryCtxRelease, 7000)(0));
    CU(cuDevicePrimaryCtxGetState(0, &flags, &active));
    EXPECT_EQ(active, 0);
    Gpu again;
    CU(OLDER(cuDevicePrimaryCtxReset, 7000)(0));
    CU(cuDevicePrimaryCtxGetState(0, &flags, &active));
    EXPECT_EQ(active, 0);
    CUuuid old{};
    CUuuid current{};
    CU(OLDER(cuDeviceGetUuid, 9020)(&old, 0));
    CU(cuDeviceGetUuid(&current, 0));
    EXPECT_EQ(std::string(old.bytes, 16), std::string(current.bytes, 16));
    EXPECT_NE(std::string(old.bytes, 16), std::string(16, '\0'));
  }));
}

// Before 12.0 it did not say why it found nothing.
TEST(OlderEntries, LookUps) {
  EXPECT_CLEAN(in_child({}, [] {
    const auto look_up = OLDER(cuGetProcAddress, 11030);
    void* address = nullptr;
    CU(look_up("cuMemAlloc", &address, 11030, CU_GET_PROC_ADDRESS_DEFAULT));
    EXPECT_EQ(address, reinterpret_cast<void*>(&cuMemAlloc));
    EXPECT_EQ(look_up("cuNoSuchEntry", &address, 11030, CU_GET_PROC_ADDRESS_DEFAULT),
              CUDA_ERROR_NOT_FOUND);
    EXPECT_EQ(address, nullptr);
  }));
}

TEST(OlderEntries, Graphs) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kGraphBytes);
    const WordsKernel stores(gpu.store, p, 1);
    const WordsKernel adds(gpu.add, p, 10);
    const auto narrow = [](const WordsKernel& kernel) {
      CUDA_KERNEL_NODE_PARAMS_v1 what = {};
      std::memcpy(&what, &kernel.params, sizeof what);  // the newer one has more at its end
      return what;
    };
    const CUgraph graph = new_graph();
    const CUDA_KERNEL_NODE_PARAMS_v1 first = narrow(stores);
    CUgraphNode a = nullptr;
    CU(OLDER(cuGraphAddKernelNode, 10000)(&a, graph, nullptr, 0, &first));
    CUgraphNodeParams any = {};
    any.type = CU_GRAPH_NODE_TYPE_KERNEL;
    std::memcpy(&any.kernel, &adds.params, sizeof adds.params);
    CUgraphNode b = nullptr;
    CU(OLDER(cuGraphAddNode, 12020)(&b, graph, nullptr, 0, &any));
    CU(OLDER(cuGraphAddDependencies, 10000)(graph, &a, &b, 1));
    CUgraphNode from = nullptr;
    CUgraphNode to = nullptr;
    size_t count = 1;
    CU(OLDER(cuGraphGetEdges, 10000)(graph, &from, &to, &count));
    EXPECT_EQ(count, 1U);
    EXPECT_EQ(from, a);
    EXPECT_EQ(to, b);
    count = 1;
    CUgraphNode near = nullptr;
    CU(OLDER(cuGraphNodeGetDependencies, 10000)(b, &near, &count));
    EXPECT_EQ(near, a);
    count = 1;
    CU(OLDER(cuGraphNodeGetDependentNodes, 10000)(a, &near, &count));
    EXPECT_EQ(near, b);
    CUDA_KERNEL_NODE_PARAMS_v1 asked = {};
    CU(OLDER(cuGraphKernelNodeGetParams, 10000)(a, &asked));
    EXPECT_EQ(asked.func, gpu.store);
    EXPECT_EQ(*static_cast<uint32_t*>(asked.kernelParams[2]), 1U);
    const WordsKernel two(gpu.store, p, 2);
    const CUDA_KERNEL_NODE_PARAMS_v1 second = narrow(two);
    CU(OLDER(cuGraphKernelNodeSetParams, 10000)(a, &second));
    CUgraphNode error_node = a;
    char log[8] = "x";
    CUgraphExec exec = nullptr;
    CU(OLDER(cuGraphInstantiate, 10000)(&exec, graph, &error_node, log, sizeof log));
    EXPECT_EQ(error_node, nullptr);
    EXPECT_STREQ(log, "");
    const CUstream stream = new_stream();
    CU(cuGraphLaunch(exec, stream));
    EXPECT_EQ(gpu.read(p, kWords)[3], 12U);
    CU(OLDER(cuGraphInstantiate, 11000)(&exec, graph, &error_node, log, sizeof log));
    const WordsKernel three(gpu.store, p, 3);
    const CUDA_KERNEL_NODE_PARAMS_v1 third = narrow(three);
    CU(OLDER(cuGraphExecKernelNodeSetParams, 10010)(exec, a, &third));
    CU(cuGraphLaunch(exec, stream));
    EXPECT_EQ(gpu.read(p, kWords)[3], 13U);
    CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_ERROR;
    CU(OLDER(cuGraphExecUpdate, 10020)(exec, graph, &error_node, &result));
    EXPECT_EQ(result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    CU(cuGraphLaunch(exec, stream));
    EXPECT_EQ(gpu.read(p, kWords)[3], 12U);
    CU(OLDER(cuGraphRemoveDependencies, 10000)(graph, &a, &b, 1));
    CU(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
    EXPECT_EQ(count, 0U);
  }));
}

TEST(OlderEntries, Capture) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kGraphBytes);
    const CUstream stream = new_stream();
    CU(OLDER(cuStreamBeginCapture, 10000)(stream));
    CU(gpu.launch_store(p, kWords, 4, stream));
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    CU(OLDER(cuStreamGetCaptureInfo, 10010)(stream, &status, &id));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    cuuint64_t again = 0;
    CUgraph into = nullptr;
    const CUgraphNode* last = nullptr;
    size_t count = 0;
    CU(OLDER(cuStreamGetCaptureInfo, 11030)(stream, &status, &again, &into, &last, &count));
    EXPECT_EQ(again, id);
    EXPECT_NE(into, nullptr);
    EXPECT_EQ(count, 1U);
    CUgraphNode store = last[0];
    // What comes now depends on nothing.
    CU(OLDER(cuStreamUpdateCaptureDependencies, 11030)(stream, nullptr, 0,
                                                       CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    CU(cuMemsetD8Async(p + kGraphBytes / 2, 0, 4, stream));
    CU(OLDER(cuStreamUpdateCaptureDependencies, 11030)(stream, &store, 1,
                                                       CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    CU(OLDER(cuStreamGetCaptureInfo, 11030)(stream, &status, &again, nullptr, &last, &count));
    EXPECT_EQ(count, 2U);
    CUgraph graph = nullptr;
    CU(cuStreamEndCapture(stream, &graph));
    CU(cuGraphGetRootNodes(graph, nullptr, &count));
    EXPECT_EQ(count, 2U);
  }));
}

TEST(OlderEntries, Memory) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    static uint32_t plain[1024];
    CU(OLDER(cuMemHostRegister, 4000)(plain, sizeof plain, 0));
    CUmemorytype type{};
    CU(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                             reinterpret_cast<CUdeviceptr>(plain)));
    EXPECT_EQ(type, CU_MEMORYTYPE_HOST);
    CU(cuMemHostUnregister(plain));
    CUdeviceptr managed = 0;
    CU(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
    const auto advise = OLDER(cuMemAdvise, 8000);
    CU(advise(managed, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
    CU(advise(managed, 4096, CU_MEM_ADVISE_SET_ACCESSED_BY, 0));
    EXPECT_EQ(advise(managed, 4096, CU_MEM_ADVISE_SET_ACCESSED_BY, 7), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_EQ(advise(managed, 8192, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_ERROR_INVALID_VALUE);
    const auto prefetch = OLDER(cuMemPrefetchAsync, 8000);
    const CUstream stream = new_stream();
    CU(prefetch(managed, 4096, 0, stream));
    CU(prefetch(managed, 4096, CU_DEVICE_CPU, stream));
    EXPECT_EQ(prefetch(managed, 4096, 7, stream), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_EQ(prefetch(allocate(4096), 4096, 0, stream), CUDA_ERROR_INVALID_VALUE);

    const CUdeviceptr p = allocate(64);
    const CUdeviceptr q = allocate(64);
    CU(cuMemsetD32Async(p, 7, 16, stream));
    CUdeviceptr to[] = {q, q + 32};
    CUdeviceptr from[] = {p, p + 32};
    size_t sizes[] = {32, 32};
    CUmemcpyAttributes attributes = {};
    attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    size_t begins = 0;
    size_t failed = 9;
    CU(OLDER(cuMemcpyBatchAsync, 12080)(to, from, sizes, 2, &attributes, &begins, 1, &failed,
                                        stream));
    EXPECT_EQ(gpu.read(q, 16)[15], 7U);
    CU(cuMemsetD32Async(p, 8, 16, stream));
    CUDA_MEMCPY3D_BATCH_OP box = {};
    box.src.type = box.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    box.src.op.ptr.ptr = p;
    box.dst.op.ptr.ptr = q;
    box.extent = {64, 1, 1};
    box.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    CU(OLDER(cuMemcpy3DBatchAsync, 12080)(1, &box, &failed, 0, stream));
    EXPECT_EQ(gpu.read(q, 16)[15], 8U);
  }));
}

// A handle of the process's own memory cannot be opened in it (cuIpcOpenMemHandle).
TEST(OlderEntries, SharedMemory) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    CUipcMemHandle handle{};
    CU(cuIpcGetMemHandle(&handle, allocate(4096)));
    CUdeviceptr opened = 0;
    EXPECT_EQ(OLDER(cuIpcOpenMemHandle, 4010)(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
              CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(OLDER(cuIpcOpenMemHandle, 4010)(&opened, handle, 0), CUDA_ERROR_INVALID_VALUE);
  }));
}

}  // namespace
}  // namespace simgpu::test
