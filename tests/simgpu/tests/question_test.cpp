// SPDX-License-Identifier: Apache-2.0
// Small questions and settings of devices, contexts and streams (CUDA Driver API reference, "Device
// Management", "Context Management", "Stream Management").
#include <cudaProfiler.h>

#include <cstring>
#include <string>

#include "tests/simgpu/tests/support/older.h"

namespace simgpu::test {
namespace {

TEST(DeviceQuestions, AreAnsweredByDevice) {
  EXPECT_CLEAN(in_child({{"SIMGPU_DEVICES", "2"}}, [] {
    CU(cuInit(0));
    CUdevice device = 9;
    CU(cuDeviceGet(&device, 1));
    EXPECT_EQ(device, 1);
    EXPECT_EQ(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
    char name[64] = "";
    CU(cuDeviceGetName(name, sizeof name, 0));
    EXPECT_STREQ(name, "Simulated GPU");
    char few[5] = "";
    CU(cuDeviceGetName(few, sizeof few, 0));
    EXPECT_STREQ(few, "Simu");  // cut, and ended
    CUuuid first{};
    CUuuid second{};
    CU(cuDeviceGetUuid(&first, 0));
    CU(cuDeviceGetUuid(&second, 1));
    EXPECT_NE(std::memcmp(&first, &second, sizeof first), 0);
    int major = 0;
    int minor = 9;
    CU(OLDER(cuDeviceComputeCapability, 2000)(&major, &minor, 0));
    EXPECT_EQ(10 * major + minor, 80);
    int supported = 9;
    CU(cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
    EXPECT_EQ(supported, 0);
    size_t width = 0;
    CU(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 1, 0));
    EXPECT_EQ(width, size_t{1} << 28);
    int value = 9;
    CU(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
    EXPECT_EQ(value, 1);
    CU(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 0, 1));
    EXPECT_EQ(value, 0);
    EXPECT_EQ(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 1, 1),
              CUDA_ERROR_INVALID_VALUE);
  }));
}

TEST(ContextQuestions, SettingsAreOfOneContext) {
  EXPECT_CLEAN(in_child({{"SIMGPU_DEVICES", "2"}}, [] {
    Gpu gpu;
    CUcontext other = nullptr;
    CU(cuCtxCreate(&other, nullptr, CU_CTX_SCHED_SPIN, 1));
    unsigned flags = 0;
    CU(cuCtxGetFlags(&flags));
    EXPECT_EQ(flags, static_cast<unsigned>(CU_CTX_SCHED_SPIN));
    CU(cuCtxSetFlags(CU_CTX_SCHED_YIELD));
    CU(cuCtxGetFlags(&flags));
    EXPECT_EQ(flags, static_cast<unsigned>(CU_CTX_SCHED_YIELD));
    size_t value = 0;
    CU(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    EXPECT_EQ(value, 1024U);
    CU(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    CU(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    EXPECT_EQ(value, 4096U);
    EXPECT_EQ(cuCtxGetLimit(&value, CU_LIMIT_MAX), CUDA_ERROR_UNSUPPORTED_LIMIT);
    EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_MAX, 1), CUDA_ERROR_UNSUPPORTED_LIMIT);
    CU(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
    CUfunc_cache config = CU_FUNC_CACHE_PREFER_NONE;
    CU(cuCtxGetCacheConfig(&config));
    EXPECT_EQ(config, CU_FUNC_CACHE_PREFER_L1);
    CUdevice device = 9;
    CU(OLDER(cuCtxGetDevice, 13000)(&device, gpu.context));
    EXPECT_EQ(device, 0);
    CU(OLDER(cuCtxGetDevice, 13000)(&device, nullptr));
    EXPECT_EQ(device, 1);
    // The first one has its own.
    CU(cuCtxSetCurrent(gpu.context));
    CU(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    EXPECT_EQ(value, 1024U);
    CU(cuCtxGetCacheConfig(&config));
    EXPECT_EQ(config, CU_FUNC_CACHE_PREFER_NONE);
    unsigned version = 0;
    CU(cuCtxGetApiVersion(gpu.context, &version));
    EXPECT_EQ(version, 3020U);  // of cuCtxCreate_v2 and later
    CUsharedconfig banks = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
    CU(OLDER(cuCtxSetSharedMemConfig, 4020)(CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
    CU(OLDER(cuCtxGetSharedMemConfig, 4020)(&banks));
    EXPECT_EQ(banks, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE);  // all that there is since Maxwell
    CU(cuCtxResetPersistingL2Cache());
    CU(cuProfilerStart());
    CU(cuProfilerStop());
    CU(cuCtxSetCurrent(nullptr));
    CU(cuCtxSetCurrent(nullptr));
    for (const CUresult result :
         {cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE), cuCtxGetFlags(&flags),
          cuCtxResetPersistingL2Cache(), cuProfilerStart(), cuProfilerStop()}) {
      EXPECT_EQ(result, CUDA_ERROR_INVALID_CONTEXT);
    }
  }));
}

// cuCtxSynchronize of CUDA 13: of any context, current or not.
TEST(ContextQuestions, AnyContextCanBeSynchronised) {
  EXPECT_CLEAN(in_child({{"SIMGPU_SCHEDULE", "late"}}, [] {
    Gpu gpu;
    CUcontext other = nullptr;
    CU(cuCtxCreate(&other, nullptr, 0, 0));
    const CUstream stream = new_stream();
    auto* word = static_cast<volatile uint32_t*>(allocate_pinned(4));
    *word = 0;
    CU(cuStreamWriteValue32(stream, reinterpret_cast<CUdeviceptr>(word), 5, 0));
    CU(cuCtxSetCurrent(gpu.context));
    CU(OLDER(cuCtxSynchronize, 13000)(nullptr));
    EXPECT_EQ(*word, 0U);
    CU(OLDER(cuCtxSynchronize, 13000)(other));
    EXPECT_EQ(*word, 5U);
  }));
}

TEST(StreamQuestions, AttributesAndDevice) {
  EXPECT_CLEAN(in_child({{"SIMGPU_DEVICES", "2"}}, [] {
    Gpu gpu;
    const CUstream a = new_stream();
    const CUstream b = new_stream();
    CUstreamAttrValue value = {};
    value.priority = -4;
    CU(cuStreamSetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    int priority = 0;
    CU(cuStreamGetPriority(a, &priority));
    EXPECT_EQ(priority, -4);
    CU(cuStreamCopyAttributes(b, a));
    value = {};
    CU(cuStreamGetAttribute(b, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    EXPECT_EQ(value.priority, -4);
    CU(cuStreamGetAttribute(b, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    EXPECT_EQ(value.syncPolicy, CU_SYNC_POLICY_AUTO);
    CUcontext other = nullptr;
    CU(cuCtxCreate(&other, nullptr, 0, 1));
    CUdevice device = 9;
    CU(cuStreamGetDevice(a, &device));
    EXPECT_EQ(device, 0);  // the stream's, not the current one
    CU(cuStreamGetDevice(nullptr, &device));
    EXPECT_EQ(device, 1);
  }));
}

// cuStreamBatchMemOp: "operations are enqueued in the order they appear in the array"; at most 255.
TEST(StreamQuestions, BatchesOfValues) {
  for (const char* schedule : {"fifo", "late", "random:3"}) {
    EXPECT_CLEAN(in_child({{"SIMGPU_SCHEDULE", schedule}}, [] {
      Gpu gpu;
      auto* words = static_cast<volatile uint32_t*>(allocate_pinned(64));
      for (int i = 0; i < 16; ++i) words[i] = 0;
      const auto address = reinterpret_cast<CUdeviceptr>(words);
      const auto write = [&](size_t word, uint32_t number) {
        CUstreamBatchMemOpParams what = {};
        what.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
        what.writeValue.address = address + 4 * word;
        what.writeValue.value = number;
        return what;
      };
      CUstreamBatchMemOpParams wait = {};
      wait.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
      wait.waitValue.address = address + 4;
      wait.waitValue.value = 1;
      wait.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
      std::vector<CUstreamBatchMemOpParams> batch = {write(0, 1), wait, write(0, 2), write(2, 3)};
      const CUstream stream = new_stream();
      CU(cuStreamBatchMemOp(stream, 4, batch.data(), 0));
      batch[3] = write(2, 99);  // it was copied
      while (words[0] == 0) EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
      EXPECT_EQ(words[0], 1U);
      EXPECT_EQ(words[2], 0U);
      CU(cuStreamWriteValue32(new_stream(), address + 4, 1, 0));
      CU(cuCtxSynchronize());
      EXPECT_EQ(words[0], 2U);
      EXPECT_EQ(words[2], 3U);
      batch.assign(256, write(3, 1));
      EXPECT_EQ(cuStreamBatchMemOp(stream, 256, batch.data(), 0), CUDA_ERROR_INVALID_VALUE);
      CU(cuStreamBatchMemOp(stream, 255, batch.data(), 0));
      CU(cuStreamSynchronize(stream));
      EXPECT_EQ(words[3], 1U);
    }));
  }
}

// Multicast objects need NVSwitch: the device says that it has none, and the entries refuse.
TEST(Multicast, IsNotSupported) {
  const Outcome outcome = in_child({}, [] {
    Gpu gpu;
    int supported = 9;
    CU(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0));
    EXPECT_EQ(supported, 0);
    CUmulticastObjectProp properties = {};
    properties.numDevices = 1;
    properties.size = 2 << 20;
    size_t bytes = 0;
    CUmemGenericAllocationHandle handle = 0;
    const CUmemGenericAllocationHandle extent = new_extent(2 << 20).handle;
    for (const CUresult result :
         {cuMulticastGetGranularity(&bytes, &properties, CU_MULTICAST_GRANULARITY_MINIMUM),
          cuMulticastCreate(&handle, &properties), cuMulticastAddDevice(handle, 0),
          cuMulticastBindMem(handle, 0, extent, 0, 2 << 20, 0),
          cuMulticastBindAddr(handle, 0, 0, 2 << 20, 0),
          cuMulticastUnbind(handle, 0, 0, 2 << 20)}) {
      EXPECT_EQ(result, CUDA_ERROR_NOT_SUPPORTED);
    }
  });
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_TRUE(outcome.says("cuMulticastCreate is not modelled"));
}

}  // namespace
}  // namespace simgpu::test
