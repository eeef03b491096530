// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/runtime/driver.h"

#include <dlfcn.h>

#include <type_traits>

#include "tests/simgpu/runtime/call.h"

namespace simgpu::runtime {
namespace {

Driver table;

void* look_up(const char* name, int version, Flavor flavor) {
  void* entry = nullptr;
  CUdriverProcAddressQueryResult found{};
  const auto flag = flavor == kLegacy ? CU_GET_PROC_ADDRESS_LEGACY_STREAM
                                      : CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (table.get_proc_address(name, &entry, version, flag, &found) != CUDA_SUCCESS) return nullptr;
  return found == CU_GET_PROC_ADDRESS_SUCCESS ? entry : nullptr;
}

template <class Function>
void fetch(Function* entry, const char* name, int version, Flavor flavor) {
  *entry = reinterpret_cast<Function>(look_up(name, version, flavor));
}

void fetch_all() {
#define DRIVER_ENTRY(name, version) fetch(&table.name, #name, version, kLegacy);
#define DRIVER_PAIR(name, version, thread_version, suffix)                                        \
  static_assert(std::is_same_v<PFN_##name##_v##version, PFN_##name##_v##thread_version##suffix>); \
  fetch(&table.name[kLegacy], #name, version, kLegacy);                                           \
  fetch(&table.name[kPerThread], #name, thread_version, kPerThread);
#include "tests/simgpu/runtime/driver_entries.def"
#undef DRIVER_ENTRY
#undef DRIVER_PAIR
  // The answers are not kept: whoever watches the driver's entries must live with being asked for
  // what is never called.
#define DRIVER_LOOKUP(name, version, flag) \
  look_up(#name, version, flag == 2 ? kPerThread : kLegacy);
#include "tests/simgpu/runtime/driver_lookups.def"
#undef DRIVER_LOOKUP
}

cudaError_t open_once() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) return cudaErrorInsufficientDriver;
  table.get_proc_address =
      reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library, "cuGetProcAddress_v2"));
  if (table.get_proc_address == nullptr) return cudaErrorInsufficientDriver;
  fetch_all();
  table.program_allocated = reinterpret_cast<decltype(table.program_allocated)>(
      dlsym(library, "simgpu_program_allocated"));
  table.program_frees =
      reinterpret_cast<decltype(table.program_frees)>(dlsym(library, "simgpu_program_frees"));
  int version = 0;
  if (call(table.cuDriverGetVersion, &version) != cudaSuccess || version < 13000) {
    return cudaErrorInsufficientDriver;
  }
  return call(table.cuInit, 0U);
}

}  // namespace

cudaError_t open_driver() {
  static const cudaError_t status = open_once();
  return status;
}

const Driver& driver() {
  return table;
}

}  // namespace simgpu::runtime
