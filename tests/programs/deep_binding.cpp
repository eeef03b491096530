// SPDX-License-Identifier: Apache-2.0
// deep_binding LIBRARY [cuda]: opens a library with RTLD_DEEPBIND and calls it; with `cuda` that
// library looks the driver up past liboffload, and the program then allocates.

#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

int main(int count, char** arguments) {
  if (count < 2) return 2;
  void* library = dlopen(arguments[1], RTLD_NOW | RTLD_DEEPBIND);
  if (library == nullptr) return 3;
  std::printf("answer %d\n", reinterpret_cast<int (*)()>(dlsym(library, "deep_answer"))());
  if (count < 3 || std::strcmp(arguments[2], "cuda") != 0) return 5;
  std::printf("driver %d\n", reinterpret_cast<int (*)()>(dlsym(library, "deep_driver_version"))());
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  reinterpret_cast<decltype(&cuInit)>(dlsym(driver, "cuInit"))(0);
  reinterpret_cast<decltype(&cuDevicePrimaryCtxRetain)>(dlsym(driver, "cuDevicePrimaryCtxRetain"))(
      &context, 0);
  reinterpret_cast<decltype(&cuCtxSetCurrent)>(dlsym(driver, "cuCtxSetCurrent"))(context);
  const CUresult result =
      reinterpret_cast<decltype(&cuMemAlloc)>(dlsym(driver, "cuMemAlloc_v2"))(&memory, 8 << 20);
  std::printf("allocation %d\n", result);
  return 5;
}
