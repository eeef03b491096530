// SPDX-License-Identifier: Apache-2.0
// Whose function does a program get for a name, by each door? Prints "<question>: <file that holds
// the answer>".

#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace {

const char* owner(void* function) {
  Dl_info where;
  if (function == nullptr) return "nobody";
  if (dladdr(function, &where) == 0) return "?";
  const char* slash = std::strrchr(where.dli_fname, '/');
  return slash == nullptr ? where.dli_fname : slash + 1;
}

}  // namespace

int main() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return 2;
  for (const char* name :
       {"cuMemAlloc_v2", "cuLaunchKernel", "cuLaunchKernel_ptsz", "cuGetProcAddress_v2", "cuInit",
        "cuEventQuery", "cuGraphLaunch", "cuNoSuchEntry"}) {
    std::printf("dlsym %s: %s\n", name, owner(dlsym(driver, name)));
  }
  std::printf("default cuMemAlloc_v2: %s\n", owner(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2")));

  void* found = dlsym(driver, "cuGetProcAddress_v2");
  auto ask = reinterpret_cast<CUresult (*)(const char*, void**, int, cuuint64_t,
                                           CUdriverProcAddressQueryResult*)>(found);
  if (ask == nullptr) return 3;
  // The runtime asks for the door itself and goes on with the answer.
  void* again = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const CUresult asked = ask("cuGetProcAddress", &again, 12000, 0, &status);
  std::printf("self: %d, %s, status %d\n", asked, owner(again), status);
  if (again != nullptr) ask = reinterpret_cast<decltype(ask)>(again);

  struct Question {
    const char* base;
    int version;
    cuuint64_t flags;
  };
  void* legacy = nullptr;
  void* per_thread = nullptr;
  ask("cuMemcpyAsync", &legacy, 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status);
  ask("cuMemcpyAsync", &per_thread, 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status);
  std::printf("kinds: %s\n",
              legacy != nullptr && per_thread != nullptr && legacy != per_thread ? "two" : "one");
  std::printf("same as by name: %s, %s\n", legacy == dlsym(driver, "cuMemcpyAsync") ? "yes" : "no",
              per_thread == dlsym(driver, "cuMemcpyAsync_ptsz") ? "yes" : "no");
  for (const Question& it :
       {Question{"cuMemAlloc", 13000, 0}, Question{"cuMemcpyHtoDAsync", 13000, 2},
        Question{"cuEventQuery", 13000, 0}, Question{"cuSimgpuUnknownA", 13000, 0},
        Question{"cuNoSuchEntry", 13000, 0}, Question{"cuMemAlloc", 3020, 0}}) {
    void* function = nullptr;
    status = CU_GET_PROC_ADDRESS_SUCCESS;
    const CUresult result = ask(it.base, &function, it.version, it.flags, &status);
    std::printf("%s %d: %d, %s, status %d\n", it.base, it.version, result, owner(function), status);
  }
}
