// SPDX-License-Identifier: Apache-2.0
// Opened with RTLD_DEEPBIND: its own dlsym is the C library's, whatever is preloaded.

#include <cuda.h>
#include <dlfcn.h>

#include <cstdlib>

extern "C" {

__attribute__((visibility("default"))) int deep_answer() {
  using Function = int (*)(const char*);
  const auto convert = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, "atoi"));
  return convert == nullptr ? -1 : convert("42");
}

// Reaches the driver by itself, past any interposer.
__attribute__((visibility("default"))) int deep_driver_version() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return -1;
  const auto ask =
      reinterpret_cast<decltype(&cuDriverGetVersion)>(dlsym(driver, "cuDriverGetVersion"));
  int version = 0;
  return ask != nullptr && ask(&version) == CUDA_SUCCESS ? version : -1;
}
}
