// SPDX-License-Identifier: Apache-2.0
// Kernels compiled by nvcc, launched by every road.

#include <cstdlib>
#include <cstring>

#include "tests/simgpu/runtime/tests/kernels.h"
#include "tests/simgpu/runtime/tests/support.h"

namespace simgpu::test {
namespace {

constexpr int kCount = 1000;

void expect_filled(const Buffer<int>& data, int value) {
  const auto numbers = data.get();
  EXPECT_EQ(numbers[0], value);
  EXPECT_EQ(numbers[kCount - 1], value + kCount - 1);
}

TEST(Launch, TheGeneratedCodeRunsPtx) {
  Buffer<int> data(kCount);
  launch_fill(data.data(), 10, kCount, nullptr);
  EXPECT_CUDA(cudaGetLastError());
  EXPECT_CUDA(cudaDeviceSynchronize());
  expect_filled(data, 10);
}

TEST(Launch, ATwinOfTheSameSourceIsUsedWhereThereIsOne) {
  Buffer<float> x(kCount);
  Buffer<float> y(kCount);
  x.put(std::vector<float>(kCount, 3.0F));
  y.put(std::vector<float>(kCount, 0.5F));
  launch_saxpy(2.0F, x.data(), y.data(), kCount, nullptr);
  EXPECT_CUDA(cudaDeviceSynchronize());
  EXPECT_EQ(y.get(), std::vector<float>(kCount, 6.5F));
  EXPECT_EQ(std::getenv("SIMGPU_TEST_TWIN_RAN") != nullptr, std::getenv("SIMGPU_TWINS") != nullptr);
}

TEST(Launch, StructsArriveWhole) {
  Buffer<int> out(1);
  launch_sum_of_struct(out.data(), nullptr);
  EXPECT_EQ(out.get()[0], 499500);
}

TEST(Launch, ByAddressOfTheHostFunction) {
  Buffer<int> data(kCount);
  int* pointer = data.data();
  int value = 20;
  int count = kCount;
  void* arguments[] = {&pointer, &value, &count};
  EXPECT_CUDA(cudaLaunchKernel(fill_function(), dim3(8), dim3(128), arguments, 0, nullptr));
  expect_filled(data, 20);
  value = 30;
  EXPECT_CUDA(
      cudaLaunchCooperativeKernel(fill_function(), dim3(8), dim3(128), arguments, 0, nullptr));
  expect_filled(data, 30);
  value = 40;
  Stream stream;
  cudaLaunchConfig_t configuration{};
  configuration.gridDim = dim3(8);
  configuration.blockDim = dim3(128);
  configuration.stream = stream;
  EXPECT_CUDA(cudaLaunchKernelExC(&configuration, fill_function(), arguments));
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  expect_filled(data, 40);
}

TEST(Launch, GoesToTheStreamThatTheConfigurationNames) {
  cudaStream_t gone = nullptr;
  ASSERT_CUDA(cudaStreamCreate(&gone));
  ASSERT_CUDA(cudaStreamDestroy(gone));
  int* pointer = nullptr;
  int zero = 0;
  void* arguments[] = {&pointer, &zero, &zero};
  cudaLaunchConfig_t configuration{};
  configuration.gridDim = dim3(1);
  configuration.blockDim = dim3(1);
  EXPECT_CUDA(cudaLaunchKernelExC(&configuration, fill_function(), arguments));
  configuration.stream = gone;
  EXPECT_EQ(cudaLaunchKernelExC(&configuration, fill_function(), arguments),
            cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  EXPECT_CUDA(cudaDeviceSynchronize());
}

TEST(Launch, ByKernelHandle) {
  cudaKernel_t kernel = nullptr;
  ASSERT_CUDA(cudaGetKernel(&kernel, fill_function()));
  Buffer<int> data(kCount);
  int* pointer = data.data();
  int value = 50;
  int count = kCount;
  void* arguments[] = {&pointer, &value, &count};
  EXPECT_CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(8), dim3(128), arguments,
                               0, nullptr));
  expect_filled(data, 50);
}

TEST(Launch, ArgumentsAreTakenAtTheCall) {
  Buffer<int> data(kCount);
  Stream stream;
  int* pointer = data.data();
  int value = 60;
  int count = kCount;
  void* arguments[] = {&pointer, &value, &count};
  EXPECT_CUDA(cudaLaunchKernel(fill_function(), dim3(8), dim3(128), arguments, 0, stream));
  value = -1;
  pointer = nullptr;
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  expect_filled(data, 60);
}

TEST(Launch, ARefusedLaunchIsTheLastError) {
  launch_with_block(4096);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  int local = 0;
  EXPECT_EQ(cudaLaunchKernel(&local, dim3(1), dim3(1), nullptr, 0, nullptr),
            cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDeviceFunction);
}

TEST(Functions, TellTheirAttributesNamesAndParameters) {
  cudaFuncAttributes attributes{};
  EXPECT_CUDA(cudaFuncGetAttributes(&attributes, saxpy_function()));
  EXPECT_EQ(attributes.binaryVersion, 80);
  EXPECT_GE(attributes.ptxVersion, 80);
  EXPECT_GE(attributes.maxThreadsPerBlock, 256);
  EXPECT_GT(attributes.numRegs, 0);
  EXPECT_CUDA(
      cudaFuncSetAttribute(saxpy_function(), cudaFuncAttributeMaxDynamicSharedMemorySize, 1024));
  const char* name = nullptr;
  EXPECT_CUDA(cudaFuncGetName(&name, saxpy_function()));
  EXPECT_STREQ(name, "saxpy");
  size_t offset = 0;
  size_t size = 0;
  EXPECT_CUDA(cudaFuncGetParamInfo(saxpy_function(), 3, &offset, &size));
  EXPECT_EQ(offset, 24U);
  EXPECT_EQ(size, 4U);
  EXPECT_EQ(cudaFuncGetParamInfo(saxpy_function(), 4, &offset, &size), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  int blocks = 0;
  EXPECT_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, saxpy_function(), 128, 0));
  EXPECT_GT(blocks, 0);
}

}  // namespace
}  // namespace simgpu::test
