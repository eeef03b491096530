// SPDX-License-Identifier: Apache-2.0
// What the code that nvcc generates calls, but for launches: crt/host_runtime.h declares it.

#include <cuda_runtime_api.h>

#include "tests/simgpu/runtime/call.h"
#include "tests/simgpu/runtime/registry.h"

#define GENERATED_API extern "C" __attribute__((visibility("default")))

namespace simgpu::runtime {

namespace {

FatBinary* to_fat_binary(void** handle) {
  return reinterpret_cast<FatBinary*>(handle);
}

}  // namespace

GENERATED_API void** __cudaRegisterFatBinary(void* wrapper) {
  return reinterpret_cast<void**>(register_fat_binary(wrapper));
}

GENERATED_API void __cudaRegisterFatBinaryEnd(void**) {}

GENERATED_API void __cudaUnregisterFatBinary(void** handle) {
  forget(to_fat_binary(handle));
}

GENERATED_API void __cudaRegisterFunction(void** handle, const char* host_function, char*,
                                          const char* name, int, uint3*, uint3*, dim3*, dim3*,
                                          int*) {
  register_function(to_fat_binary(handle), host_function, name);
}

GENERATED_API void __cudaRegisterVar(void** handle, char* host_variable, char*, const char* name,
                                     int, size_t bytes, int, int) {
  register_variable(to_fat_binary(handle), host_variable, name, bytes);
}

// Managed variables are not modelled; a program that never touches its own runs.
GENERATED_API void __cudaRegisterManagedVar(void**, void**, char*, const char*, int, size_t, int,
                                            int) {}
GENERATED_API void __cudaRegisterHostVar(void**, const char*, char*, size_t) {}
GENERATED_API void __cudaRegisterUnifiedTable(void**, void*) {}
GENERATED_API char __cudaInitModule(void**) {
  return 1;
}

}  // namespace simgpu::runtime
