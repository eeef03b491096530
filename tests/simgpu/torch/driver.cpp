// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/torch/driver.h"

#include <dlfcn.h>

namespace simgpu::torch {
namespace {

using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult*);

constexpr int kVersion = 12040;

template <class Function>
bool fetch(GetProcAddress get, const char* name, Function* entry) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  if (get(name, &found, kVersion, CU_GET_PROC_ADDRESS_DEFAULT, &status) != CUDA_SUCCESS ||
      found == nullptr) {
    return false;
  }
  *entry = reinterpret_cast<Function>(found);
  return true;
}

bool open(Door door, Driver* all) {
  void* library = dlopen("libcuda.so.1", RTLD_LAZY);
  if (library == nullptr) return false;
  const auto get = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (get == nullptr || !fetch(get, "cuLibraryLoadData", &all->library_load_data) ||
      !fetch(get, "cuLibraryGetKernel", &all->library_get_kernel)) {
    return false;
  }
  if (door == Door::kProcAddress) return fetch(get, "cuLaunchKernel", &all->launch_kernel);
  all->launch_kernel =
      reinterpret_cast<decltype(all->launch_kernel)>(dlsym(library, "cuLaunchKernel"));
  return all->launch_kernel != nullptr;
}

}  // namespace

const Driver* driver(Door door) {
  static Driver instance;
  static const bool opened = open(door, &instance);
  return opened ? &instance : nullptr;
}

}  // namespace simgpu::torch
