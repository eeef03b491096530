// SPDX-License-Identifier: Apache-2.0
#pragma once
// The runtime's only way to the driver, as in the real one: dlopen("libcuda.so.1"), dlsym of
// cuGetProcAddress_v2, then every entry through that function, all of them in one go at the first
// call. Nothing here links libcuda.

#include <cudaTypedefs.h>
#include <driver_types.h>

namespace simgpu::runtime {

// Which stream 0 means: the index of the two variants of an entry.
enum Flavor { kLegacy = 0, kPerThread = 1 };

// Null where the driver does not have the entry.
struct Driver {
  PFN_cuGetProcAddress_v12000 get_proc_address = nullptr;
#define DRIVER_ENTRY(name, version) PFN_##name##_v##version name = nullptr;
#define DRIVER_PAIR(name, version, thread_version, suffix) \
  PFN_##name##_v##version name[2] = {nullptr, nullptr};
#include "tests/simgpu/runtime/driver_entries.def"
#undef DRIVER_ENTRY
#undef DRIVER_PAIR
  // Tell the simulated driver what the program asks for (tests/simgpu/memory/allotments.h). Not of
  // NVIDIA's interface, and null with any other driver.
  void (*program_allocated)(CUdeviceptr address, size_t bytes) = nullptr;
  void (*program_frees)(CUdeviceptr address) = nullptr;
};

// Opens and initialises the driver once. cudaErrorInsufficientDriver: there is none; else what
// cuInit said. Thread-safe; a failure is final.
cudaError_t open_driver();

// To be used only after open_driver() succeeded.
const Driver& driver();

}  // namespace simgpu::runtime
