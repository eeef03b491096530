// SPDX-License-Identifier: Apache-2.0
// Two devices: peer access (cuda.h, cuCtxEnablePeerAccess), VMM access per mapping, copies between
// them; and the kinds of memory and copy that need a line of their own.
#include <cstring>

#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {
namespace {

constexpr uint32_t kWords = 64;
constexpr size_t kBytes = 4 * kWords;

class Peers : public testing::TestWithParam<const char*> {
 protected:
  Outcome run(const std::function<void()>& body) {
    return in_child({{"SIMGPU_SCHEDULE", GetParam()}, {"SIMGPU_DEVICES", "2"}}, body);
  }
};

INSTANTIATE_TEST_SUITE_P(Schedules, Peers, testing::Values("fifo", "late"));

// Both devices; the first is current.
struct Pair {
  Pair() : first(0), second(1) { cuCtxSetCurrent(first.context); }
  Gpu first;
  Gpu second;
  CUdeviceptr on_second(size_t bytes) {
    cuCtxSetCurrent(second.context);
    const CUdeviceptr address = allocate(bytes);
    cuCtxSetCurrent(first.context);
    return address;
  }
};

TEST_P(Peers, AccessIsEnabledPerContextAndDirection) {
  EXPECT_CLEAN(run([] {
    Pair gpus;
    const CUdeviceptr before = gpus.on_second(kBytes);
    EXPECT_EQ(cuCtxEnablePeerAccess(gpus.first.context, 0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuCtxEnablePeerAccess(gpus.second.context, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuCtxDisablePeerAccess(gpus.second.context), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    CU(cuCtxEnablePeerAccess(gpus.second.context, 0));
    EXPECT_EQ(cuCtxEnablePeerAccess(gpus.second.context, 0),
              CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    const CUdeviceptr after = gpus.on_second(kBytes);
    for (const CUdeviceptr p : {before, after}) {
      CU(gpus.first.launch_store(p, kWords, 5, nullptr));
      EXPECT_EQ(gpus.first.read(p, 1)[0], 5U);
    }
    CU(cuCtxDisablePeerAccess(gpus.second.context));
  }));
}

TEST_P(Peers, WithoutAccessAKernelFaults) {
  const Outcome outcome = run([] {
    Pair gpus;
    const CUdeviceptr mine = allocate(kBytes);
    const CUdeviceptr theirs = gpus.on_second(kBytes);
    CU(cuCtxEnablePeerAccess(gpus.second.context, 0));
    // The other direction is another matter.
    CU(cuCtxSetCurrent(gpus.second.context));
    CU(gpus.second.launch_store(theirs, kWords, 5, nullptr));
    CU(cuCtxSynchronize());
    CU(gpus.second.launch_store(mine, kWords, 5, nullptr));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  });
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_TRUE(outcome.says("to which it has no access")) << outcome.errors;
}

TEST_P(Peers, EnablingDoesNothingForMappings) {
  const Outcome outcome = run([] {
    Pair gpus;
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAllocationProp properties = device_properties(1);
    const size_t bytes = 2 << 20;
    CU(cuMemCreate(&handle, bytes, &properties, 0));
    CUdeviceptr p = 0;
    CU(cuMemAddressReserve(&p, bytes, 0, 0, 0));
    CU(cuMemMap(p, bytes, 0, handle, 0));
    CU(give_access(p, bytes, 1));
    CU(cuCtxEnablePeerAccess(gpus.second.context, 0));
    unsigned long long flags = 9;
    CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CU(cuMemGetAccess(&flags, &location, p));
    EXPECT_EQ(flags, 0U);
    CU(give_access(p, bytes, 0));  // this does it
    CU(gpus.first.launch_store(p, kWords, 6, nullptr));
    EXPECT_EQ(gpus.first.read(p, 1)[0], 6U);
    const CUmemAccessDesc none = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_NONE};
    CU(cuMemSetAccess(p, bytes, &none, 1));
    CU(gpus.first.launch_store(p, kWords, 6, nullptr));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  });
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

TEST_P(Peers, CopiesNeedNoAccess) {
  EXPECT_CLEAN(run([] {
    Pair gpus;
    const CUdeviceptr p = allocate(kBytes);
    const CUdeviceptr q = gpus.on_second(kBytes);
    const CUstream stream = new_stream();
    CU(gpus.first.launch_store(p, kWords, 5, stream));
    CU(cuMemcpyPeerAsync(q, gpus.second.context, p, gpus.first.context, kBytes, stream));
    CU(cuMemsetD8Async(p, 0, kBytes, stream));
    CU(cuStreamSynchronize(stream));
    CU(cuMemcpy(p, q, kBytes / 2));
    CUDA_MEMCPY3D_PEER box = {};
    box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    box.srcDevice = q;
    box.srcContext = gpus.second.context;
    box.dstDevice = p;
    box.dstContext = gpus.first.context;
    box.dstXInBytes = kBytes / 2;
    box.WidthInBytes = kBytes / 4;
    box.Height = box.Depth = 1;
    CU(cuMemcpy3DPeer(&box));
    const std::vector<uint32_t> words = gpus.first.read(p, kWords);
    EXPECT_EQ(words[kWords / 2 - 1], 5U);
    EXPECT_EQ(words[kWords / 2], 5U);
    EXPECT_EQ(words[kWords * 3 / 4], 0U);
  }));
}

TEST_P(Peers, EventsOrderStreamsOfTwoDevices) {
  const auto body = [](bool waits) {
    Pair gpus;
    const CUdeviceptr q = gpus.on_second(kBytes);
    CU(cuCtxEnablePeerAccess(gpus.second.context, 0));
    const CUstream a = new_stream();
    const CUevent event = new_event();
    CU(gpus.first.launch_store(q, kWords, 5, a));
    CU(cuEventRecord(event, a));
    CU(cuCtxSetCurrent(gpus.second.context));
    const CUstream b = new_stream();
    EXPECT_EQ(cuEventRecord(event, b), CUDA_ERROR_INVALID_HANDLE);  // of another context
    if (waits) {
      CU(cuStreamWaitEvent(b, event, 0));
    }
    CU(gpus.second.launch_add(q, kWords, 1, b));
    CU(cuStreamSynchronize(b));
    CU(cuCtxSetCurrent(gpus.first.context));
    CU(cuCtxSynchronize());
  };
  EXPECT_CLEAN(run([&] { body(true); }));
  const Outcome outcome = run([&] { body(false); });
  EXPECT_EQ(outcome.status, 97) << outcome.errors;
}

TEST(BatchCopies, AllOrNothing) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    const CUdeviceptr q = allocate(kBytes);
    std::vector<uint32_t> source(kWords, 3);
    auto* pinned = static_cast<uint32_t*>(allocate_pinned(kBytes));
    CUdeviceptr to[] = {p, q, reinterpret_cast<CUdeviceptr>(pinned)};
    CUdeviceptr from[] = {reinterpret_cast<CUdeviceptr>(source.data()), p, q};
    size_t sizes[] = {kBytes, kBytes, kBytes};
    CUmemcpyAttributes attributes = {};
    attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    size_t first = 0;
    const CUstream stream = new_stream();
    EXPECT_EQ(cuMemcpyBatchAsync(to, from, sizes, 3, &attributes, &first, 1, nullptr),
              CUDA_ERROR_INVALID_VALUE);  // not on the default stream
    CU(cuMemcpyBatchAsync(to, from, sizes, 3, &attributes, &first, 1, stream));
    source.assign(kWords, 9);
    CU(cuStreamSynchronize(stream));
    EXPECT_EQ(pinned[kWords - 1], 3U);
    sizes[1] = 2 << 20;  // too large: nothing happens
    EXPECT_EQ(cuMemcpyBatchAsync(to, from, sizes, 3, &attributes, &first, 1, stream),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(gpu.read(p, 1)[0], 3U);
    CUDA_MEMCPY3D_BATCH_OP box = {};
    box.src.type = box.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    box.src.op.ptr.ptr = p;
    box.dst.op.ptr.ptr = q;
    box.dst.op.ptr.rowLength = 32;
    box.extent = {16, 2, 1};
    box.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    CU(gpu.launch_store(p, kWords, 8, stream));
    CU(cuMemcpy3DBatchAsync(1, &box, 0, stream));
    const std::vector<uint32_t> words = gpu.read(q, 16);
    EXPECT_EQ(words[3], 8U);
    EXPECT_EQ(words[4], 3U);
    EXPECT_EQ(words[8], 8U);
    EXPECT_EQ(words[12], 3U);
  }));
}

TEST(ManagedMemory, IsSeenByHostAndDevice) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    CUdeviceptr p = 0;
    EXPECT_EQ(cuMemAllocManaged(&p, kBytes, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemAllocManaged(&p, kBytes, CU_MEM_ATTACH_GLOBAL));
    auto* words = reinterpret_cast<uint32_t*>(p);
    words[0] = 41;
    CU(gpu.launch_add(p, 1, 1, nullptr));
    const CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CU(cuMemPrefetchAsync(p, kBytes, device, 0, nullptr));
    CU(cuMemAdvise(p, kBytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device));
    CU(cuCtxSynchronize());
    EXPECT_EQ(words[0], 42U);
    unsigned managed = 0;
    CU(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
    EXPECT_EQ(managed, 1U);
    unsigned type = 0;
    CU(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
    const CUdeviceptr plain = allocate(kBytes);
    EXPECT_EQ(cuMemPrefetchAsync(plain, kBytes, device, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
    // "Not for managed memory" (cuStreamWaitValue32).
    EXPECT_EQ(cuStreamWaitValue32(nullptr, p, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
    CU(cuMemFree(p));
    EXPECT_EQ(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
  }));
}

TEST(PointerAttributes, SyncMemopsMakesCopiesWait) {
  EXPECT_CLEAN(in_child({{"SIMGPU_SCHEDULE", "late"}}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    const CUdeviceptr q = allocate(kBytes);
    CU(gpu.launch_store(p, kWords, 1, nullptr));
    CU(cuMemcpyDtoD(q, p, kBytes));
    EXPECT_EQ(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);  // device to device does not wait
    CU(cuCtxSynchronize());
    int on = 1;
    CU(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, q));
    CU(cuPointerGetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, q));
    EXPECT_EQ(on, 1);
    CU(cuMemcpyDtoD(q, p, kBytes));
    CU(cuStreamQuery(nullptr));
  }));
}

TEST(TensorMaps, CheckWhatIsDocumented) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(1 << 20);
    CUtensorMap map = {};  // aligned by its type
    const cuuint64_t dimensions[] = {64, 64};
    cuuint64_t strides[] = {256};
    cuuint32_t box[] = {32, 32};
    const cuuint32_t steps[] = {1, 1};
    const auto encode = [&](CUdeviceptr address) {
      return cuTensorMapEncodeTiled(
          &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, reinterpret_cast<void*>(address), dimensions,
          strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
          CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    };
    CU(encode(p));
    const CUtensorMap before = map;
    CU(cuTensorMapReplaceAddress(&map, reinterpret_cast<void*>(p + 64)));
    EXPECT_NE(std::memcmp(&before, &map, sizeof map), 0);
    CU(encode(p + 64));
    EXPECT_EQ(encode(p + 8), CUDA_ERROR_INVALID_VALUE);
    box[0] = 512;
    EXPECT_EQ(encode(p), CUDA_ERROR_INVALID_VALUE);
    box[0] = 32;
    strides[0] = 8;
    EXPECT_EQ(encode(p), CUDA_ERROR_INVALID_VALUE);
  }));
}

}  // namespace
}  // namespace simgpu::test
