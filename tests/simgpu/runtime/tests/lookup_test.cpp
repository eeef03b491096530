// SPDX-License-Identifier: Apache-2.0
// How the runtime reaches a driver, on one that only counts.

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <vector>

namespace {

struct Counts {
  int legacy;
  int per_thread;
  int virtual_memory;
};

const Counts& counts() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  EXPECT_NE(driver, nullptr) << dlerror();
  const auto get = reinterpret_cast<const Counts* (*)()>(dlsym(driver, "stub_counts"));
  EXPECT_NE(get, nullptr) << "not the counting driver";
  return *get();
}

extern "C" {
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFatBinaryEnd(void**);
void __cudaUnregisterFatBinary(void**);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*,
                            dim3*, int*);
}

TEST(Lookup, EverythingIsAskedForAtTheFirstCallAndNothingBefore) {
  EXPECT_EQ(counts().legacy, 0);
  // Registering asks the driver nothing and looks at no image: this one is not even readable.
  void** handle = __cudaRegisterFatBinary(reinterpret_cast<void*>(8));
  std::vector<char> functions(20000);
  for (char& function : functions) {
    __cudaRegisterFunction(handle, &function, nullptr, "kernel", -1, nullptr, nullptr, nullptr,
                           nullptr, nullptr);
  }
  __cudaRegisterFatBinaryEnd(handle);
  EXPECT_EQ(counts().legacy, 0);

  int count = 7;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
  EXPECT_EQ(count, 0);
  const Counts first = counts();
  EXPECT_GT(first.legacy, 300);
  EXPECT_GT(first.per_thread, 60);
  EXPECT_EQ(first.virtual_memory, 0);  // left to those who use it

  EXPECT_EQ(cudaFree(nullptr), cudaErrorInsufficientDriver);
  EXPECT_EQ(counts().legacy, first.legacy);
  __cudaUnregisterFatBinary(handle);
}

TEST(Lookup, AnOldDriverIsInsufficientForAllButTheVersions) {
  int version = 0;
  EXPECT_EQ(cudaRuntimeGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version, 13000);
  EXPECT_EQ(cudaDriverGetVersion(&version), cudaSuccess);
  void* pointer = nullptr;
  EXPECT_EQ(cudaMalloc(&pointer, 16), cudaErrorInsufficientDriver);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInsufficientDriver);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
