// SPDX-License-Identifier: Apache-2.0
// libcuda.so.1 as it is where the driver proper is another file behind it: the few names that it
// has are looked up in that one (named by STUB_DRIVER), as a program would look them up.

#include <cuda.h>
#include <dlfcn.h>

#include <cstdlib>

namespace {

template <typename Function>
Function* behind(const char* name) {
  static void* const driver = dlopen(std::getenv("STUB_DRIVER"), RTLD_NOW);
  return driver == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(driver, name));
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))
#undef cuGetProcAddress

EXPORTED CUresult cuInit(unsigned flags) {
  const auto real = behind<CUresult(unsigned)>("cuInit");
  return real == nullptr ? CUDA_ERROR_NO_DEVICE : real(flags);
}

EXPORTED CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
  return behind<CUresult(CUdeviceptr*, size_t)>("cuMemAlloc_v2")(out, bytes);
}

#ifdef STUB_BEFORE_CUDA_12
EXPORTED CUresult cuGetProcAddress(const char* name, void** out, int version, cuuint64_t flags) {
  const auto real = behind<CUresult(const char*, void**, int, cuuint64_t)>("cuGetProcAddress");
  return real == nullptr ? CUDA_ERROR_NO_DEVICE : real(name, out, version, flags);
}
#else
EXPORTED CUresult cuGetProcAddress_v2(const char* name, void** out, int version, cuuint64_t flags,
                                      CUdriverProcAddressQueryResult* status) {
  const auto real =
      behind<CUresult(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*)>(
          "cuGetProcAddress_v2");
  return real == nullptr ? CUDA_ERROR_NO_DEVICE : real(name, out, version, flags, status);
}
#endif
