// SPDX-License-Identifier: Apache-2.0
// What a kernel of unknown effect touches when the runtime tells what the program asked for.
#include "tests/simgpu/memory/allotments.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {
namespace {

// Takes two pointers; the interpreter does not know warp operations.
constexpr const char* kUnknown = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry unknown(.param .u64 a, .param .u64 b)
{
  .reg .b32 %r<3>;
  shfl.sync.down.b32 %r1, %r2, 1, 31, -1;
  ret;
}
)";

constexpr size_t kBytes = 4096;

void expect_well(const Outcome& outcome) {
  EXPECT_EQ(outcome.status, 0) << outcome.errors;  // with a line about the kernel
}

CUfunction unknown_kernel() {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  EXPECT_EQ(cuModuleLoadData(&module, kUnknown), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleGetFunction(&function, module, "unknown"), CUDA_SUCCESS);
  return function;
}

void launch(CUfunction function, CUdeviceptr a, CUdeviceptr b) {
  void* arguments[] = {&a, &b};
  CU(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
}

std::vector<unsigned char> bytes_of(CUdeviceptr p) {
  std::vector<unsigned char> bytes(kBytes);
  EXPECT_EQ(cuMemcpyDtoH(bytes.data(), p, kBytes), CUDA_SUCCESS);
  return bytes;
}

constexpr unsigned char kOld = 0xee;

TEST(Allotment, IsAllThatAnUnknownKernelTouches) {
  expect_well(in_child({}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    CU(cuMemsetD8(p, kOld, kBytes));
    simgpu_program_allocated(p + 256, 100);
    simgpu_program_allocated(p + 512, 64);
    simgpu_program_frees(p + 512);
    // The second argument names what was freed.
    launch(unknown_kernel(), p + 256, p + 512);
    const auto bytes = bytes_of(p);
    for (size_t i = 0; i < kBytes; ++i) {
      const bool named = i >= 256 && i < 356;
      ASSERT_EQ(bytes[i] != kOld, named) << i;
    }
  }));
}

TEST(Allotment, IsNamedFromTheAddressToItsEnd) {
  expect_well(in_child({}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    CU(cuMemsetD8(p, kOld, kBytes));
    simgpu_program_allocated(p, 1024);
    CU(cuMemsetD8(p, 1, 1024));
    launch(unknown_kernel(), p + 1000, 0);
    const auto bytes = bytes_of(p);
    EXPECT_EQ(std::count(bytes.begin(), bytes.begin() + 1000, 1), 1000);
    EXPECT_EQ(std::count(bytes.begin() + 1000, bytes.begin() + 1024, 1), 0);
    EXPECT_EQ(bytes[1024], kOld);
  }));
}

// What the program freed after the launch is still what the launch names.
TEST(Allotment, IsLookedUpWhenTheLaunchIsSubmitted) {
  expect_well(in_child({}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    CU(cuMemsetD8(p, kOld, kBytes));
    CU(cuCtxSynchronize());
    simgpu_program_allocated(p, 100);
    const CUstream stream = new_stream();
    Gate gate;
    gate.close(stream);
    CUdeviceptr a = p;
    CUdeviceptr b = 0;
    void* arguments[] = {&a, &b};
    CU(cuLaunchKernel(unknown_kernel(), 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr));
    simgpu_program_frees(p);
    simgpu_program_allocated(p, 200);
    gate.open();
    CU(cuStreamSynchronize(stream));
    const auto bytes = bytes_of(p);
    EXPECT_EQ(std::count(bytes.begin(), bytes.begin() + 100, kOld), 0);
    // The new one is fresh: the copy, its first use, finds it zeroed.
    EXPECT_EQ(std::count(bytes.begin(), bytes.begin() + 200, 0), 200);
    EXPECT_EQ(bytes[200], kOld);
  }));
}

std::vector<unsigned char> result_over(unsigned char before) {
  const CUdeviceptr p = allocate(kBytes);
  EXPECT_EQ(cuMemsetD8(p, before, kBytes), CUDA_SUCCESS);
  simgpu_program_allocated(p, kBytes);
  launch(unknown_kernel(), p, 0);
  return bytes_of(p);
}

TEST(Allotment, NewOnesHoldZeros) {
  expect_well(in_child({}, [] {
    Gpu gpu;
    EXPECT_EQ(result_over(1), result_over(2));
  }));
}

TEST(Allotment, TheFirstUseIsNotLost) {
  expect_well(in_child({}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    CU(cuMemsetD8(p, kOld, kBytes));
    CU(cuCtxSynchronize());
    simgpu_program_allocated(p, 16);
    simgpu_program_allocated(p + 256, 16);
    simgpu_program_allocated(p + 512, 16);
    CU(cuStreamWriteValue32(nullptr, p + 4, 7, 0));
    const uint32_t number = 9;
    CU(cuMemcpyHtoD(p + 256 + 4, &number, sizeof number));
    CU(cuMemsetD32(p + 512 + 4, 5, 1));
    for (const auto& [at, value] : {std::pair{p, 7U}, {p + 256, 9U}, {p + 512, 5U}}) {
      EXPECT_EQ(gpu.read(at, 4), (std::vector<uint32_t>{0, value, 0, 0}));
    }
  }));
}

// The report's hash: by birth and offset, so two runs agree though their addresses differ.
std::string names_hash(size_t gap, size_t offset) {
  const std::string path =
      testing::TempDir() + "allotment_names." + std::to_string(getpid()) + ".json";
  expect_well(in_child({{"SIMGPU_REPORT", path}}, [=] {
    Gpu gpu;
    if (gap > 0) allocate(gap);
    const CUdeviceptr p = allocate(kBytes);
    simgpu_program_allocated(p, kBytes);
    launch(unknown_kernel(), p + offset, 0);
    CU(cuCtxSynchronize());
  }));
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(std::remove(path.c_str()), 0) << path;
  const size_t at = text.find("\"names_hash\"");
  EXPECT_NE(at, std::string::npos);
  return text.substr(at, text.find(',', at) - at);
}

TEST(Allotment, NamesAreReportedWithoutAddresses) {
  EXPECT_EQ(names_hash(0, 0), names_hash(1 << 20, 0));
  EXPECT_NE(names_hash(0, 0), names_hash(0, 8));
}

}  // namespace
}  // namespace simgpu::test
