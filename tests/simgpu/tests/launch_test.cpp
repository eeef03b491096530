// SPDX-License-Identifier: Apache-2.0
// Modules, functions, launches.
#include <cstring>

#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {
namespace {

constexpr uint32_t kWords = 100;

// CUDA Driver API reference, "Execution Control", cuLaunchKernel: by kernelParams or by extra,
// not both, copied at the call.
TEST(Launch, AllWaysToPassArguments) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    CUdeviceptr p = allocate(4 * kWords);
    CU(cuMemsetD32(p, 0, kWords));
    uint32_t count = kWords;
    uint32_t value = 1;
    void* arguments[] = {&p, &count, &value};
    CU(cuLaunchKernel(gpu.add, 2, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
    CU(cuLaunchCooperativeKernel(gpu.add, 2, 1, 1, 64, 1, 1, 0, nullptr, arguments));
    CUlaunchConfig config = {};
    config.gridDimX = 2;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 64;
    config.blockDimY = config.blockDimZ = 1;
    CU(cuLaunchKernelEx(&config, gpu.add, arguments, nullptr));
    struct {
      CUdeviceptr p;
      uint32_t count;
      uint32_t value;
    } packed = {p, count, 10};
    size_t size = sizeof packed;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    CU(cuLaunchKernel(gpu.add, 2, 1, 1, 64, 1, 1, 0, nullptr, nullptr, extra));
    packed.value = 1000;  // taken at the call
    value = 1000;
    EXPECT_EQ(gpu.read(p, kWords)[kWords - 1], 13U);
    EXPECT_EQ(cuLaunchKernel(gpu.add, 2, 1, 1, 64, 1, 1, 0, nullptr, arguments, extra),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuLaunchKernel(gpu.add, 2, 1, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr),
              CUDA_ERROR_INVALID_VALUE);
  }));
}

// CUDA Driver API reference, "Execution Control", cuLaunchKernel, and "Device Management", the
// limits of grids, blocks and shared memory.
TEST(Launch, ShapesAreChecked) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    CUdeviceptr p = allocate(4);
    uint32_t count = 0;
    uint32_t value = 0;
    void* arguments[] = {&p, &count, &value};
    const auto launch = [&](unsigned gx, unsigned gy, unsigned bx, unsigned by, unsigned bz,
                            unsigned shared) {
      return cuLaunchKernel(gpu.add, gx, gy, 1, bx, by, bz, shared, nullptr, arguments, nullptr);
    };
    CU(launch(1, 1, 1024, 1, 1, 0));
    EXPECT_EQ(launch(0, 1, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(launch(1, 65536, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(launch(1, 1, 0, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(launch(1, 1, 1025, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(launch(1, 1, 64, 32, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(launch(1, 1, 1, 1, 65, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(launch(1, 1, 1, 1, 1, 1 << 20), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuLaunchKernel(reinterpret_cast<CUfunction>(&p), 1, 1, 1, 1, 1, 1, 0, nullptr,
                             arguments, nullptr),
              CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuLaunchKernel(gpu.add, 1, 1, 1, 1, 1, 1, 0, reinterpret_cast<CUstream>(&p),
                             arguments, nullptr),
              CUDA_ERROR_INVALID_HANDLE);
  }));
}

// CUDA Driver API reference, "Module Management", cuFuncGetParamInfo: past the last parameter
// CUDA_ERROR_INVALID_VALUE; "Occupancy".
TEST(Launch, ParameterInformation) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    size_t offset = 9;
    size_t size = 9;
    CU(cuFuncGetParamInfo(gpu.copy, 1, &offset, &size));
    EXPECT_EQ(offset, 8U);
    EXPECT_EQ(size, 8U);
    CU(cuFuncGetParamInfo(gpu.copy, 2, &offset, nullptr));
    EXPECT_EQ(offset, 16U);
    EXPECT_EQ(cuFuncGetParamInfo(gpu.copy, 3, &offset, &size), CUDA_ERROR_INVALID_VALUE);
    const char* name = nullptr;
    CU(cuFuncGetName(&name, gpu.copy));
    EXPECT_STREQ(name, "copy");
    CUmodule module = nullptr;
    CU(cuFuncGetModule(&module, gpu.copy));
    EXPECT_EQ(module, gpu.module);
    int value = 0;
    CU(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, gpu.copy));
    EXPECT_EQ(value, 1024);
    CU(cuFuncSetAttribute(gpu.copy, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
    CU(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, gpu.copy));
    EXPECT_EQ(value, 100000);
    EXPECT_EQ(cuFuncSetAttribute(gpu.copy, CU_FUNC_ATTRIBUTE_NUM_REGS, 1),
              CUDA_ERROR_INVALID_VALUE);
    int blocks = 0;
    CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, gpu.copy, 256, 0));
    EXPECT_EQ(blocks, 8);
  }));
}

// CUDA Driver API reference, "Module Management", cuModuleGetFunction (CUDA_ERROR_NOT_FOUND),
// cuModuleUnload.
TEST(Launch, ModulesAndFunctions) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    CUfunction function = nullptr;
    EXPECT_EQ(cuModuleGetFunction(&function, gpu.module, "nothing"), CUDA_ERROR_NOT_FOUND);
    CU(cuModuleGetFunction(&function, gpu.module, "add"));
    EXPECT_EQ(function, gpu.add);
    CUdeviceptr p = 0;
    size_t bytes = 0;
    EXPECT_EQ(cuModuleGetGlobal(&p, &bytes, gpu.module, "variable"), CUDA_ERROR_NOT_FOUND);
    unsigned count = 0;
    CU(cuModuleGetFunctionCount(&count, gpu.module));
    EXPECT_EQ(count, 3U);
    // A queued kernel outlives its module.
    const CUstream stream = new_stream();
    p = allocate(4 * kWords);
    Gate gate;
    gate.close(stream);
    CU(gpu.launch_store(p, kWords, 8, stream));
    CU(cuModuleUnload(gpu.module));
    EXPECT_EQ(cuModuleUnload(gpu.module), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(gpu.launch_store(p, kWords, 8, stream), CUDA_ERROR_INVALID_HANDLE);
    gate.open();
    EXPECT_EQ(gpu.read(p, 1)[0], 8U);
  }));
}

// CUDA Driver API reference, "Library Management": kernels without a context, launched in the
// one of the stream.
TEST(Launch, LibrariesAndKernels) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const char* source = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry one(.param .u64 p)
{
  .reg .u32 %r<2>; .reg .u64 %d<2>;
  ld.param.u64 %d1, [p]; mov.u32 %r1, 1; st.global.u32 [%d1], %r1; ret;
}
)";
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CU(cuLibraryLoadData(&library, source, nullptr, nullptr, 0, nullptr, nullptr, 0));
    CU(cuLibraryGetKernel(&kernel, library, "one"));
    size_t offset = 9;
    size_t size = 9;
    CU(cuKernelGetParamInfo(kernel, 0, &offset, &size));
    EXPECT_EQ(size, 8U);
    EXPECT_EQ(cuKernelGetParamInfo(kernel, 1, &offset, &size), CUDA_ERROR_INVALID_VALUE);
    const char* name = nullptr;
    CU(cuKernelGetName(&name, kernel));
    EXPECT_STREQ(name, "one");
    CUdeviceptr p = allocate(8);
    CU(cuMemsetD32(p, 0, 2));
    void* arguments[] = {&p};
    // A kernel is taken for a function.
    CU(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments,
                      nullptr));
    CUfunction function = nullptr;
    CU(cuKernelGetFunction(&function, kernel));
    CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
    EXPECT_EQ(gpu.read(p, 2), (std::vector<uint32_t>{1, 0}));
    CU(cuLibraryUnload(library));
  }));
}

TEST(Launch, AKernelMayReadWhatItWrote) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const char* source = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry scratch(.param .u64 p)
{
  .reg .u32 %r<3>; .reg .u64 %d<2>;
  ld.param.u64 %d1, [p];
  mov.u32 %r1, 5; st.global.u32 [%d1], %r1; ld.global.u32 %r2, [%d1];
  st.global.u32 [%d1+4], %r2; ret;
}
)";
    CUmodule module = nullptr;
    CUfunction scratch = nullptr;
    CU(cuModuleLoadData(&module, source));
    CU(cuModuleGetFunction(&scratch, module, "scratch"));
    CUdeviceptr p = allocate(8);
    void* arguments[] = {&p};
    CU(cuLaunchKernel(scratch, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
    EXPECT_EQ(gpu.read(p, 2), (std::vector<uint32_t>{5, 5}));
  }));
}

// CUDA Driver API reference, CUresult, CUDA_ERROR_LAUNCH_FAILED (719): the context is lost.
TEST(Launch, AKernelThatDoesNotEndIsALaunchFailure) {
  const Outcome outcome = in_child({{"SIMGPU_PTX_LIMIT", "1000"}}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(4 * kWords);
    CU(gpu.launch_store(p, kWords, 1, nullptr));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
  });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(outcome.says("launch failure: kernel store")) << outcome.errors;
}

// CUDA Driver API reference, "Module Management", cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE.
TEST(Launch, AnImageThatIsNone) {
  const Outcome outcome = in_child({}, [] {
    Gpu gpu;
    CUmodule module = nullptr;
    EXPECT_EQ(cuModuleLoadData(&module, "this is no image"), CUDA_ERROR_INVALID_IMAGE);
  });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(outcome.says("an image cannot be loaded")) << outcome.errors;
}

}  // namespace
}  // namespace simgpu::test
