// SPDX-License-Identifier: Apache-2.0
// Green contexts and events of contexts (CUDA Driver API reference, "Green Contexts" and "Context
// Management").
#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {
namespace {

constexpr uint32_t kWords = 256;
constexpr size_t kBytes = 4 * kWords;

CUdevResource processors_of(CUdevice device = 0) {
  CUdevResource all = {};
  EXPECT_EQ(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
  return all;
}

// A green context with at least so many multiprocessors.
CUgreenCtx new_green(unsigned least) {
  const CUdevResource all = processors_of();
  CUdevResource part = {};
  unsigned groups = 1;
  EXPECT_EQ(cuDevSmResourceSplitByCount(&part, &groups, &all, nullptr, 0, least), CUDA_SUCCESS);
  CUdevResourceDesc desc = nullptr;
  EXPECT_EQ(cuDevResourceGenerateDesc(&desc, &part, 1), CUDA_SUCCESS);
  CUgreenCtx green = nullptr;
  EXPECT_EQ(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_SUCCESS);
  return green;
}

CUcontext as_context(CUgreenCtx green) {
  CUcontext context = nullptr;
  EXPECT_EQ(cuCtxFromGreenCtx(&context, green), CUDA_SUCCESS);
  return context;
}

CUstream stream_of(CUgreenCtx green) {
  CUstream stream = nullptr;
  EXPECT_EQ(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
  return stream;
}

// cuDevSmResourceSplitByCount: symmetrical partitions, of at least as many as asked for, in the
// units that the device tells.
TEST(GreenContexts, ProcessorsAreSplit) {
  EXPECT_CLEAN(in_child({{"SIMGPU_DEVICES", "2"}}, [] {
    Gpu gpu;
    const CUdevResource all = processors_of();
    int processors = 0;
    CU(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    EXPECT_EQ(all.sm.smCount, static_cast<unsigned>(processors));
    EXPECT_EQ(all.sm.minSmPartitionSize, 4U);
    EXPECT_EQ(all.sm.smCoscheduledAlignment, 2U);
    struct Case {
      unsigned flags, least, room, groups, size;
    };
    const unsigned loose = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING;
    const Case cases[] = {{0, 0, 100, 27, 4},  {0, 5, 3, 3, 6},       {0, 40, 9, 2, 40},
                          {0, 108, 9, 1, 108}, {loose, 5, 40, 21, 5}, {loose, 0, 200, 108, 1}};
    for (const Case& each : cases) {
      unsigned possible = 0;
      CU(cuDevSmResourceSplitByCount(nullptr, &possible, &all, nullptr, each.flags, each.least));
      EXPECT_EQ(possible, 108 / each.size);
      std::vector<CUdevResource> parts(each.room);
      CUdevResource rest = {};
      unsigned groups = each.room;
      CU(cuDevSmResourceSplitByCount(parts.data(), &groups, &all, &rest, each.flags, each.least));
      EXPECT_EQ(groups, each.groups);
      for (unsigned i = 0; i < groups; ++i) EXPECT_EQ(parts[i].sm.smCount, each.size);
      const unsigned left = 108 - groups * each.size;
      EXPECT_EQ(rest.type, left == 0 ? CU_DEV_RESOURCE_TYPE_INVALID : CU_DEV_RESOURCE_TYPE_SM);
      EXPECT_EQ(left == 0 ? 0 : rest.sm.smCount, left);
    }
    unsigned groups = 2;
    CUdevResource parts[2] = {};
    EXPECT_EQ(cuDevSmResourceSplitByCount(parts, &groups, &all, nullptr, 0, 109),
              CUDA_ERROR_INVALID_VALUE);
    CU(cuDevSmResourceSplitByCount(parts, &groups, &all, nullptr, 0, 8));
    // "The output results cannot be split again without first creating" a green context.
    EXPECT_EQ(cuDevSmResourceSplitByCount(nullptr, &groups, &parts[0], nullptr, 0, 4),
              CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    // A descriptor of several: "outputs from the same split".
    CUdevResourceDesc desc = nullptr;
    CU(cuDevResourceGenerateDesc(&desc, parts, 2));
    CUdevResource mixed[] = {parts[0], all};
    EXPECT_EQ(cuDevResourceGenerateDesc(&desc, mixed, 2),
              CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CUdevResource others[] = {processors_of(1), all};
    EXPECT_EQ(cuDevResourceGenerateDesc(&desc, others, 2),
              CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CUdevResource nothing = {};
    EXPECT_EQ(cuDevResourceGenerateDesc(&desc, &nothing, 1), CUDA_ERROR_INVALID_RESOURCE_TYPE);
  }));
}

// cuGreenCtxCreate, cuGreenCtxGetDevResource, cuCtxGetDevResource, cuGreenCtxGetId.
TEST(GreenContexts, HaveWhatTheirDescriptorSays) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUgreenCtx green = new_green(10);
    CUdevResource part = {};
    CU(cuGreenCtxGetDevResource(green, &part, CU_DEV_RESOURCE_TYPE_SM));
    EXPECT_EQ(part.sm.smCount, 10U);
    const CUcontext context = as_context(green);
    EXPECT_NE(context, gpu.context);
    CU(cuCtxGetDevResource(context, &part, CU_DEV_RESOURCE_TYPE_SM));
    EXPECT_EQ(part.sm.smCount, 10U);
    CU(cuCtxGetDevResource(gpu.context, &part, CU_DEV_RESOURCE_TYPE_SM));
    EXPECT_EQ(part.sm.smCount, 108U);
    unsigned long long id = 0;
    unsigned long long again = 1;
    CU(cuGreenCtxGetId(green, &id));
    EXPECT_EQ(cuGreenCtxGetId(nullptr, &again), CUDA_ERROR_INVALID_CONTEXT);
    CU(cuCtxPushCurrent(context));
    CU(cuGreenCtxGetId(nullptr, &again));
    EXPECT_EQ(id, again);
    CUdevice device = 9;
    CU(cuCtxGetDevice(&device));
    EXPECT_EQ(device, 0);
    CU(cuCtxPopCurrent(nullptr));
    // The flag is required; a green context ends by cuGreenCtxDestroy alone.
    CUdevResourceDesc desc = nullptr;
    CU(cuDevResourceGenerateDesc(&desc, &part, 1));
    CUgreenCtx other = nullptr;
    EXPECT_EQ(cuGreenCtxCreate(&other, desc, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuCtxDestroy(context), CUDA_ERROR_INVALID_CONTEXT);
    CU(cuGreenCtxDestroy(green));
    EXPECT_EQ(cuGreenCtxDestroy(green), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
  }));
}

// Kernels, memory and events are the primary context's: what one allocates the other uses, and
// streams of both can be mixed.
TEST(GreenContexts, ShareThePrimaryContextsMemory) {
  for (const char* schedule : {"fifo", "late", "random:4"}) {
    EXPECT_CLEAN(in_child({{"SIMGPU_SCHEDULE", schedule}}, [] {
      Gpu gpu;
      const CUgreenCtx green = new_green(4);
      const CUdeviceptr p = allocate(kBytes);
      const CUstream inside = stream_of(green);
      const CUstream outside = new_stream();
      const CUevent event = new_event();
      // In the primary context, on the green one's stream.
      CU(gpu.launch_store(p, kWords, 5, inside));
      CU(cuEventRecord(event, inside));
      CU(cuStreamWaitEvent(outside, event, 0));
      CU(gpu.launch_add(p, kWords, 1, outside));
      CU(cuEventRecord(event, outside));
      // And within.
      CU(cuCtxPushCurrent(as_context(green)));
      const CUdeviceptr q = allocate(kBytes);
      CU(cuStreamWaitEvent(nullptr, event, 0));
      CU(gpu.launch_copy(q, p, kWords, nullptr));
      CU(cuCtxSynchronize());
      CU(cuCtxPopCurrent(nullptr));
      EXPECT_EQ(gpu.read(q, kWords)[kWords - 1], 6U);
      // Memory outlives the green context in which it was allocated.
      CU(cuStreamDestroy(inside));
      CU(cuGreenCtxDestroy(green));
      EXPECT_EQ(gpu.read(q, kWords)[0], 6U);
      CU(cuMemFree(q));
    }));
  }
}

// cuGreenCtxStreamCreate, cuStreamGetGreenCtx, cuStreamGetCtx and its second version.
TEST(GreenContexts, StreamsKnowTheirContext) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUgreenCtx green = new_green(4);
    const CUcontext context = as_context(green);
    CUstream stream = nullptr;
    EXPECT_EQ(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_DEFAULT, 0),
              CUDA_ERROR_INVALID_VALUE);
    stream = stream_of(green);
    CUgreenCtx found = nullptr;
    CUcontext of = nullptr;
    CU(cuStreamGetGreenCtx(stream, &found));
    EXPECT_EQ(found, green);
    CU(cuStreamGetCtx(stream, &of));
    EXPECT_EQ(of, context);
    CU(cuStreamGetGreenCtx(nullptr, &found));
    EXPECT_EQ(found, nullptr);
    CU(cuStreamGetGreenCtx(new_stream(), &found));
    EXPECT_EQ(found, nullptr);
    CU(cuCtxPushCurrent(context));
    const CUstream plain = new_stream();
    for (CUstream each : {plain, CUstream{nullptr}, CU_STREAM_LEGACY}) {
      CU(cuStreamGetGreenCtx(each, &found));
      EXPECT_EQ(found, green);
      found = nullptr;
      CU(cuStreamGetCtx_v2(each, &of, &found));
      EXPECT_EQ(found, green);
      EXPECT_EQ(of, context);
    }
    CU(cuCtxPopCurrent(nullptr));
    CU(cuStreamGetCtx_v2(nullptr, &of, &found));
    EXPECT_EQ(found, nullptr);
    EXPECT_EQ(of, gpu.context);
    // "Once the green context is destroyed, any subsequent API calls involving these streams
    // (including cuStreamDestroy) will return CUDA_ERROR_CONTEXT_IS_DESTROYED."
    CU(cuGreenCtxDestroy(green));
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_EQ(gpu.launch_store(allocate(4), 1, 1, plain), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_EQ(cuStreamDestroy(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }));
}

// cuCtxSynchronize: "If the current context is the primary context, green contexts that have been
// created will also be synchronized." The other way round they are not.
TEST(GreenContexts, AreSynchronisedWithThePrimaryContext) {
  EXPECT_CLEAN(in_child({{"SIMGPU_SCHEDULE", "late"}}, [] {
    Gpu gpu;
    const CUgreenCtx green = new_green(4);
    const CUstream inside = stream_of(green);
    const CUstream outside = new_stream();
    auto* host = static_cast<volatile uint32_t*>(allocate_pinned(8));
    host[0] = 0;
    host[1] = 0;
    const CUdeviceptr address = reinterpret_cast<CUdeviceptr>(host);
    CU(cuStreamWriteValue32(outside, address, 3, 0));
    CU(cuCtxPushCurrent(as_context(green)));
    CU(cuCtxSynchronize());
    EXPECT_EQ(host[0], 0U);
    CU(cuCtxPopCurrent(nullptr));
    CU(cuStreamWriteValue32(inside, address + 4, 4, 0));
    CU(cuCtxSynchronize());
    EXPECT_EQ(host[0], 3U);
    EXPECT_EQ(host[1], 4U);
  }));
}

// cuGreenCtxCreate retains the primary context, cuGreenCtxDestroy releases it.
TEST(GreenContexts, KeepThePrimaryContext) {
  EXPECT_CLEAN(in_child({}, [] {
    CU(cuInit(0));
    const CUgreenCtx green = new_green(4);
    unsigned flags = 0;
    int active = 0;
    CU(cuDevicePrimaryCtxGetState(0, &flags, &active));
    EXPECT_EQ(active, 1);
    CU(cuGreenCtxDestroy(green));
    CU(cuDevicePrimaryCtxGetState(0, &flags, &active));
    EXPECT_EQ(active, 0);
    // A reset takes the green ones along.
    const CUgreenCtx other = new_green(4);
    const CUcontext context = as_context(other);
    CU(cuDevicePrimaryCtxReset(0));
    EXPECT_EQ(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuGreenCtxDestroy(other), CUDA_ERROR_INVALID_CONTEXT);
  }));
}

// One fault, one fate.
TEST(GreenContexts, ShareTheirFault) {
  const Outcome outcome = in_child({}, [] {
    Gpu gpu;
    const CUgreenCtx green = new_green(4);
    const CUstream stream = stream_of(green);
    CU(gpu.launch_store(allocate(4) + (1 << 20), 1, 1, stream));
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  });
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_TRUE(outcome.says("illegal address"));
}

// cuCtxRecordEvent, cuCtxWaitEvent and the green ones: all that a context has been given, and all
// that it will be given. "If the context is the primary context, the event will capture all the
// activities of the primary context and its green contexts."
TEST(ContextEvents, StandForWholeContexts) {
  for (const char* schedule : {"fifo", "late", "random:9"}) {
    EXPECT_CLEAN(in_child({{"SIMGPU_SCHEDULE", schedule}}, [] {
      Gpu gpu;
      const CUgreenCtx green = new_green(4);
      const CUstream inside = stream_of(green);
      const CUstream a = new_stream();
      const CUstream b = new_stream();
      const CUdeviceptr p = allocate(3 * kBytes);
      const CUevent event = new_event();
      CU(gpu.launch_store(p, kWords, 1, a));
      CU(gpu.launch_store(p + kBytes, kWords, 2, b));
      CU(gpu.launch_store(p + 2 * kBytes, kWords, 3, inside));
      CU(cuCtxRecordEvent(gpu.context, event));
      CU(cuGreenCtxWaitEvent(green, event));
      // The three are ordered before a stream that there was, and one that is new.
      CU(gpu.launch_add(p, kWords, 10, inside));
      CU(gpu.launch_add(p + kBytes, kWords, 10, stream_of(green)));
      CU(cuGreenCtxRecordEvent(green, event));
      CU(cuCtxWaitEvent(gpu.context, event));
      CU(gpu.launch_add(p, 2 * kWords, 100, b));
      CU(gpu.launch_add(p + 2 * kBytes, kWords, 100, new_stream()));
      const std::vector<uint32_t> words = gpu.read(p, 3 * kWords);
      EXPECT_EQ(words[5], 111U);
      EXPECT_EQ(words[kWords + 5], 112U);
      EXPECT_EQ(words[2 * kWords + 5], 103U);
    }));
  }
}

// What is left of a context that has ended, in whose place another is by now, has no part in it.
TEST(ContextEvents, AreOfLivingContexts) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUevent event = new_event();
    const CUstream early = new_stream();
    CU(cuEventRecord(event, early));
    CUcontext first = nullptr;
    CU(cuCtxCreate(&first, nullptr, 0, 0));
    CU(cuMemsetD8(allocate(4), 1, 4));
    CU(cuCtxDestroy(first));
    CUcontext second = nullptr;
    CU(cuCtxCreate(&second, nullptr, 0, 0));
    EXPECT_EQ(first, second);
    CU(cuStreamSynchronize(early));
    CU(cuStreamDestroy(early));  // what the driver had for it serves the next
    const CUdeviceptr p = allocate(kBytes);
    CU(cuMemsetD8Async(p, 1, kBytes, new_stream(CU_STREAM_DEFAULT)));
    CU(cuCtxWaitEvent(second, event));
    CU(cuMemsetD8(p, 2, kBytes));  // behind all blocking streams
    CU(cuCtxSynchronize());
  }));
}

// An event of the green context alone leaves the primary one's work out; and no context that
// captures can be recorded or made to wait (900).
TEST(ContextEvents, StandForNoMore) {
  EXPECT_REPORT(in_child({},
                         [] {
                           Gpu gpu;
                           const CUgreenCtx green = new_green(4);
                           const CUdeviceptr p = allocate(kBytes);
                           const CUevent event = new_event();
                           const CUstream outside = new_stream();
                           CU(gpu.launch_store(p, kWords, 1, outside));
                           CU(cuGreenCtxRecordEvent(green, event));
                           const CUstream other = new_stream();
                           CU(cuStreamWaitEvent(other, event, 0));
                           CU(gpu.launch_store(p, kWords, 2, other));
                           CU(cuCtxSynchronize());
                         }),
                "a race at");
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUgreenCtx green = new_green(4);
    const CUstream stream = stream_of(green);
    const CUevent event = new_event();
    CUgraph graph = nullptr;
    for (int way = 0; way < 4; ++way) {
      CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
      const CUresult answer = way == 0   ? cuGreenCtxRecordEvent(green, event)
                              : way == 1 ? cuGreenCtxWaitEvent(green, event)
                              : way == 2 ? cuCtxRecordEvent(gpu.context, event)
                                         : cuCtxWaitEvent(gpu.context, event);
      EXPECT_EQ(answer, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
      EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    CUcontext other = nullptr;
    CU(cuCtxCreate(&other, nullptr, 0, 0));
    EXPECT_EQ(cuCtxRecordEvent(other, event), CUDA_ERROR_INVALID_HANDLE);
    CU(cuCtxWaitEvent(other, event));
  }));
}

}  // namespace
}  // namespace simgpu::test
