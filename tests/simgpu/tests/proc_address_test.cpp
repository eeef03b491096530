// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress, the exports, and what is not modelled.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <set>
#include <string>

#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {
namespace {

struct Row {
  const char* base;
  const char* symbol;
  const char* per_thread;
  int version;
};

const std::vector<Row>& table() {
  static const std::vector<Row> rows = {
#define SIMGPU_ENTRY(base, symbol, version) {#base, #symbol, nullptr, version},
#define SIMGPU_ENTRY_PT(base, symbol, version, suffix) {#base, #symbol, #symbol #suffix, version},
#include "tests/simgpu/driver/entries_modelled.def"

#include "tests/simgpu/driver/entries_absent.def"
#undef SIMGPU_ENTRY
#undef SIMGPU_ENTRY_PT
  };
  return rows;
}

void* exported(const char* name) {
  return dlsym(RTLD_DEFAULT, name);
}

void* found(const char* name, int version, cuuint64_t flags = CU_GET_PROC_ADDRESS_DEFAULT) {
  void* address = nullptr;
  CUdriverProcAddressQueryResult status{};
  EXPECT_EQ(cuGetProcAddress(name, &address, version, flags, &status), CUDA_SUCCESS);
  return address;
}

TEST(ProcAddress, EveryEntryIsExportedAndFound) {
  EXPECT_CLEAN(in_child({}, [] {
    for (const Row& row : table()) {
      EXPECT_NE(exported(row.symbol), nullptr) << row.symbol;
      EXPECT_EQ(found(row.base, row.version), exported(row.symbol)) << row.symbol;
      if (row.per_thread == nullptr) continue;
      EXPECT_NE(exported(row.per_thread), nullptr) << row.per_thread;
      EXPECT_EQ(found(row.base, row.version, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM),
                exported(row.per_thread));
      EXPECT_NE(exported(row.per_thread), exported(row.symbol));
    }
  }));
}

TEST(ProcAddress, NothingElseIsExported) {
  Dl_info info = {};
  ASSERT_NE(dladdr(exported("cuInit"), &info), 0);
  std::set<std::string> expected = {"cuSimgpuUnknownA", "cuSimgpuUnknownB",
                                    "simgpu_program_allocated", "simgpu_program_frees"};
  for (const Row& row : table()) {
    expected.insert(row.symbol);
    if (row.per_thread != nullptr) expected.insert(row.per_thread);
  }
  std::FILE* names = popen(("nm -D --defined-only " + std::string(info.dli_fname)).c_str(), "r");
  ASSERT_NE(names, nullptr);
  std::set<std::string> found_names;
  char line[300];
  while (std::fgets(line, sizeof line, names) != nullptr) {
    const std::string text = line;
    found_names.insert(text.substr(text.rfind(' ') + 1, text.size() - text.rfind(' ') - 2));
  }
  pclose(names);
  EXPECT_EQ(found_names, expected);
}

TEST(ProcAddress, VersionsAndFlags) {
  EXPECT_CLEAN(in_child({}, [] {
    EXPECT_EQ(found("cuMemAlloc", 2000), exported("cuMemAlloc"));
    EXPECT_EQ(found("cuMemAlloc", 3010), exported("cuMemAlloc"));
    EXPECT_EQ(found("cuMemAlloc", 3020), exported("cuMemAlloc_v2"));
    EXPECT_EQ(found("cuMemAlloc", 13000), exported("cuMemAlloc_v2"));
    EXPECT_EQ(found("cuMemAlloc", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM),
              exported("cuMemAlloc_v2"));
    EXPECT_EQ(found("cuLaunchKernel", 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM),
              exported("cuLaunchKernel"));
    EXPECT_EQ(found("cuLaunchKernel", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM),
              exported("cuLaunchKernel_ptsz"));
    EXPECT_EQ(found("cuGetProcAddress", 11030), exported("cuGetProcAddress"));
    EXPECT_EQ(found("cuGetProcAddress", 12000), exported("cuGetProcAddress_v2"));
  }));
}

TEST(ProcAddress, Misses) {
  EXPECT_CLEAN(in_child({}, [] {
    void* address = &address;
    CUdriverProcAddressQueryResult status{};
    EXPECT_EQ(cuGetProcAddress("cuNothing", &address, 13000, 0, &status), CUDA_SUCCESS);
    EXPECT_EQ(address, nullptr);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT_EQ(cuGetProcAddress("cuMemCreate", &address, 10010, 0, &status), CUDA_SUCCESS);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    EXPECT_EQ(cuGetProcAddress("cuNothing", &address, 13000, 0, nullptr), CUDA_ERROR_NOT_FOUND);
    EXPECT_EQ(cuGetProcAddress("cuInit", &address, 99000, 0, &status), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuGetProcAddress("cuInit", &address, 13000, 3, &status), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuGetProcAddress(nullptr, &address, 13000, 0, &status), CUDA_ERROR_INVALID_VALUE);
  }));
}

TEST(ProcAddress, AnOlderDriver) {
  EXPECT_CLEAN(in_child({{"SIMGPU_DRIVER_VERSION", "12020"}}, [] {
    int version = 0;
    CU(cuDriverGetVersion(&version));
    EXPECT_EQ(version, 12020);
    void* address = nullptr;
    CUdriverProcAddressQueryResult status{};
    CU(cuGetProcAddress("cuFuncGetParamInfo", &address, 12020, 0, &status));
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT_EQ(cuGetProcAddress("cuInit", &address, 13000, 0, &status), CUDA_ERROR_INVALID_VALUE);
  }));
}

TEST(ProcAddress, MadeUpEntriesOnRequest) {
  EXPECT_CLEAN(in_child({}, [] { EXPECT_EQ(found("cuSimgpuUnknownA", 13000), nullptr); }));
  EXPECT_CLEAN(in_child({{"SIMGPU_EXTRA_ENTRIES", "cuSimgpuUnknownA,cuSimgpuUnknownB"}}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(16);
    CU(cuMemsetD8(p, 4, 16));
    auto* a = reinterpret_cast<CUresult (*)(CUdeviceptr, size_t, CUstream)>(
        found("cuSimgpuUnknownA", 13000));
    auto* b = reinterpret_cast<CUresult (*)(CUdeviceptr, size_t)>(found("cuSimgpuUnknownB", 13000));
    ASSERT_NE(a, nullptr);
    ASSERT_NE(b, nullptr);
    CU(a(p, 16, nullptr));
    CU(b(p, 8));
    EXPECT_EQ(gpu.read(p, 4),
              (std::vector<uint32_t>{0x06060606, 0x06060606, 0x05050505, 0x05050505}));
  }));
}

TEST(ProcAddress, WhatIsNotModelledSaysSoOnce) {
  const Outcome outcome = in_child({}, [] {
    Gpu gpu;
    CUgraph graph = nullptr;
    EXPECT_EQ(cuGraphCreate(&graph, 0), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(cuGraphCreate(&graph, 0), CUDA_ERROR_NOT_SUPPORTED);
  });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.errors, "simgpu: cuGraphCreate is not modelled\n");
}

// The per-thread entries mean another stream by null.
TEST(ProcAddress, PerThreadEntriesUseTheThreadsStream) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    using GetId = CUresult (*)(CUstream, unsigned long long*);
    auto* get_id = reinterpret_cast<GetId>(
        found("cuStreamGetId", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
    unsigned long long legacy = 0;
    unsigned long long mine = 0;
    unsigned long long by_handle = 0;
    CU(cuStreamGetId(nullptr, &legacy));
    CU(get_id(nullptr, &mine));
    CU(cuStreamGetId(CU_STREAM_PER_THREAD, &by_handle));
    EXPECT_NE(legacy, mine);
    EXPECT_EQ(by_handle, mine);
  }));
}

}  // namespace
}  // namespace simgpu::test
