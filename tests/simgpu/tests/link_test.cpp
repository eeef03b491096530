// SPDX-License-Identifier: Apache-2.0
// Where kernels come from: files, texts and linked images (CUDA Driver API reference, "Module
// Management" and "Library Management"), and what can be asked about them.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>

#include "tests/simgpu/tests/support/older.h"

namespace simgpu::test {
namespace {

constexpr uint32_t kWords = 64;

// A kernel name(p, n): p[i] = value, for every i below n.
std::string stores(const char* name, uint32_t value) {
  return std::string(".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry ") + name +
         R"((
    .param .u64 p, .param .u32 n)
{
  .reg .u32 %r<9>; .reg .u64 %d<4>; .reg .pred %q<2>;
  ld.param.u64 %d1, [p]; ld.param.u32 %r1, [n];
  mov.u32 %r5, %tid.x;
  setp.ge.u32 %q1, %r5, %r1;
  @%q1 bra done;
  mul.wide.u32 %d2, %r5, 4; add.u64 %d3, %d1, %d2;
  mov.u32 %r6, )" +
         std::to_string(value) + R"(; st.global.u32 [%d3], %r6;
done: ret;
}
)";
}

// What the first word is after the kernel has run.
uint32_t run(CUfunction function) {
  CUdeviceptr p = allocate(4 * kWords);
  uint32_t count = kWords;
  void* arguments[] = {&p, &count};
  EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, kWords, 1, 1, 0, nullptr, arguments, nullptr),
            CUDA_SUCCESS);
  uint32_t word = 0;
  EXPECT_EQ(cuMemcpyDtoH(&word, p, 4), CUDA_SUCCESS);
  return word;
}

uint32_t run(CUmodule module, const char* name) {
  CUfunction function = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&function, module, name), CUDA_SUCCESS);
  return run(function);
}

struct TextFile {
  explicit TextFile(const std::string& text) {
    close(mkstemp(path));
    std::ofstream(path) << text;
  }
  ~TextFile() { unlink(path); }
  char path[32] = "/tmp/simgpu-ptx-XXXXXX";
};

TEST(Modules, FromFilesAndTexts) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const std::string text = stores("seven", 7);
    const TextFile file(text);
    CUmodule module = nullptr;
    CU(cuModuleLoad(&module, file.path));
    EXPECT_EQ(run(module, "seven"), 7U);
    CU(cuModuleLoadDataEx(&module, text.c_str(), 0, nullptr, nullptr));
    EXPECT_EQ(run(module, "seven"), 7U);
    CU(cuModuleLoadFatBinary(&module, text.c_str()));
    EXPECT_EQ(run(module, "seven"), 7U);
    CUlibrary library = nullptr;
    CU(cuLibraryLoadFromFile(&library, file.path, nullptr, nullptr, 0, nullptr, nullptr, 0));
    CUkernel kernel = nullptr;
    CU(cuLibraryGetKernel(&kernel, library, "seven"));
    EXPECT_EQ(run(reinterpret_cast<CUfunction>(kernel)), 7U);
    EXPECT_EQ(cuModuleLoad(&module, "/nowhere/at/all"), CUDA_ERROR_FILE_NOT_FOUND);
    EXPECT_EQ(cuLibraryLoadFromFile(&library, "/nowhere/at/all", nullptr, nullptr, 0, nullptr,
                                    nullptr, 0),
              CUDA_ERROR_FILE_NOT_FOUND);
    CUmoduleLoadingMode mode{};
    CU(cuModuleGetLoadingMode(&mode));
    EXPECT_EQ(mode, CU_MODULE_LAZY_LOADING);  // the default on Linux from CUDA 12.2 on
  }));
}

TEST(Modules, TellWhatTheyHold) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    unsigned count = 0;
    CU(cuModuleGetFunctionCount(&count, gpu.module));
    EXPECT_EQ(count, 3U);
    CUfunction functions[3] = {};
    CU(cuModuleEnumerateFunctions(functions, 3, gpu.module));
    EXPECT_EQ(std::count(functions, functions + 3, gpu.add), 1);
    EXPECT_EQ(std::count(functions, functions + 3, gpu.copy), 1);
    EXPECT_EQ(std::count(functions, functions + 3, gpu.store), 1);
    CUmodule of = nullptr;
    CU(cuFuncGetModule(&of, gpu.add));
    EXPECT_EQ(of, gpu.module);

    CUlibrary library = nullptr;
    CU(cuLibraryLoadData(&library, stores("eight", 8).c_str(), nullptr, nullptr, 0, nullptr,
                         nullptr, 0));
    CU(cuLibraryGetKernelCount(&count, library));
    EXPECT_EQ(count, 1U);
    CUkernel kernel = nullptr;
    CU(cuLibraryEnumerateKernels(&kernel, 1, library));
    const char* name = nullptr;
    CU(cuKernelGetName(&name, kernel));
    EXPECT_STREQ(name, "eight");
    CUlibrary holder = nullptr;
    CU(cuKernelGetLibrary(&holder, kernel));
    EXPECT_EQ(holder, library);
    CUmodule module = nullptr;
    CU(cuLibraryGetModule(&module, library));
    EXPECT_EQ(run(module, "eight"), 8U);
    // Variables are not modelled: none is found.
    CUdeviceptr address = 0;
    size_t bytes = 0;
    EXPECT_EQ(cuLibraryGetGlobal(&address, &bytes, library, "x"), CUDA_ERROR_NOT_FOUND);
    EXPECT_EQ(cuLibraryGetManaged(&address, &bytes, library, "x"), CUDA_ERROR_NOT_FOUND);
    EXPECT_EQ(cuModuleGetGlobal(&address, &bytes, module, "x"), CUDA_ERROR_NOT_FOUND);
  }));
}

// cuLinkComplete: "the output is owned by state", and an image that can be loaded; the log sizes
// become how much there is to read.
TEST(Linking, GivesAnImageWithAllKernels) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    char log[64];
    CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    CUlinkState state = nullptr;
    CU(cuLinkCreate(2, options, values, &state));
    std::string one = stores("one", 1);
    const TextFile two(stores("two", 2));
    CU(cuLinkAddData(state, CU_JIT_INPUT_PTX, one.data(), one.size() + 1, "one", 0, nullptr,
                     nullptr));
    CU(cuLinkAddFile(state, CU_JIT_INPUT_PTX, two.path, 0, nullptr, nullptr));
    one.assign(one.size(), ' ');  // it was copied
    void* image = nullptr;
    size_t bytes = 0;
    CU(cuLinkComplete(state, &image, &bytes));
    EXPECT_EQ(values[1], nullptr);
    EXPECT_GT(bytes, one.size());
    CUmodule module = nullptr;
    CU(cuModuleLoadData(&module, image));
    CU(cuLinkDestroy(state));
    EXPECT_EQ(run(module, "one"), 1U);
    EXPECT_EQ(run(module, "two"), 2U);
    EXPECT_EQ(cuLinkDestroy(state), CUDA_ERROR_INVALID_HANDLE);
    unsigned count = 0;
    CU(cuModuleGetFunctionCount(&count, module));
    EXPECT_EQ(count, 2U);
  }));
}

TEST(Linking, RefusesWhatItCannotUse) {
  const Outcome outcome = in_child({}, [] {
    Gpu gpu;
    CUlinkState state = nullptr;
    CU(cuLinkCreate(0, nullptr, nullptr, &state));
    void* image = nullptr;
    size_t bytes = 0;
    EXPECT_EQ(cuLinkComplete(state, &image, &bytes), CUDA_ERROR_INVALID_VALUE);  // of nothing
    char nonsense[] = "no code at all, nor anything like it";
    const auto add = [&](CUjitInputType type) {
      return cuLinkAddData(state, type, nonsense, sizeof nonsense, "x", 0, nullptr, nullptr);
    };
    EXPECT_EQ(add(CU_JIT_INPUT_PTX), CUDA_ERROR_INVALID_PTX);
    EXPECT_EQ(add(CU_JIT_INPUT_CUBIN), CUDA_ERROR_INVALID_IMAGE);
    EXPECT_EQ(add(CU_JIT_INPUT_LIBRARY), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(cuLinkAddFile(state, CU_JIT_INPUT_CUBIN, "/nowhere/at/all", 0, nullptr, nullptr),
              CUDA_ERROR_FILE_NOT_FOUND);
    // As programs of CUDA 5.5 call it.
    CUlinkState old = nullptr;
    CU(OLDER(cuLinkCreate, 5050)(0, nullptr, nullptr, &old));
    std::string text = stores("three", 3);
    const TextFile file(text);
    CU(OLDER(cuLinkAddData, 5050)(old, CU_JIT_INPUT_PTX, text.data(), text.size(), "three", 0,
                                  nullptr, nullptr));
    text = stores("four", 4);
    CU(OLDER(cuLinkAddFile, 5050)(old, CU_JIT_INPUT_PTX, TextFile(text).path, 0, nullptr, nullptr));
    CU(cuLinkComplete(old, &image, &bytes));
    CUmodule module = nullptr;
    CU(cuModuleLoadData(&module, image));
    EXPECT_EQ(run(module, "three"), 3U);
    EXPECT_EQ(run(module, "four"), 4U);
    EXPECT_EQ(cuLinkAddFile(old, CU_JIT_INPUT_PTX, file.path, 0, nullptr, nullptr),
              CUDA_ERROR_INVALID_VALUE);  // complete
  });
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

}  // namespace
}  // namespace simgpu::test
