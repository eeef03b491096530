// SPDX-License-Identifier: Apache-2.0
// A library that uses the GPU on its own account and is closed again. Opened with RTLD_DEEPBIND its
// look-ups go to the C library, past whatever is preloaded.

#include <cuda.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

template <typename Function>
Function* find(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<Function*>(dlsym(driver, name));
}

// What the program wants done while the library is being loaded: a function and its argument.
[[gnu::constructor]] void while_loading() {
  const char* call = std::getenv("CLIENT_WHILE_LOADING");
  void* function = nullptr;
  void* argument = nullptr;
  if (call != nullptr && std::sscanf(call, "%p %p", &function, &argument) == 2)
    reinterpret_cast<void (*)(void*)>(function)(argument);
}

}  // namespace

extern "C" {

// Makes a stream and a buffer, fills that with `value` on this, and leaves both to the program.
__attribute__((visibility("default"))) int plugin_begin(CUstream* stream, CUdeviceptr* at,
                                                        size_t words, uint32_t value) {
  int result = find<decltype(cuStreamCreate)>("cuStreamCreate")(stream, CU_STREAM_NON_BLOCKING);
  if (result == 0) result = find<decltype(cuMemAlloc)>("cuMemAlloc_v2")(at, words * 4);
  if (result == 0) {
    result = find<decltype(cuMemsetD32Async)>("cuMemsetD32Async")(*at, value, words, *stream);
  }
  return result;
}

__attribute__((visibility("default"))) int plugin_read(uint32_t* to, CUdeviceptr from,
                                                       size_t words) {
  return find<decltype(cuMemcpyDtoH)>("cuMemcpyDtoH_v2")(to, from, words * 4);
}

__attribute__((visibility("default"))) int plugin_fill(CUdeviceptr at, size_t words,
                                                       uint32_t value) {
  return find<decltype(cuMemsetD32)>("cuMemsetD32_v2")(at, value, words);
}
}
