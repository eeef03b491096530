// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a program's own code registers before main: fat binaries and the host functions that stand
// for kernels. A large framework registers tens of thousands, so registering stores pointers and
// nothing else; an image goes to the driver when the first of its kernels is asked for, and stays
// there until it is unregistered. Thread-safe.

#include <cuda.h>
#include <driver_types.h>

namespace simgpu::runtime {

struct FatBinary;

// `wrapper` is the program's, and lives until forget().
FatBinary* register_fat_binary(const void* wrapper);
void forget(FatBinary* fat_binary);
void register_function(FatBinary* fat_binary, const void* host_function, const char* name);
void register_variable(FatBinary* fat_binary, const void* host_variable, const char* name,
                       size_t bytes);

// The kernel of a host function. A pointer that was never registered may be a handle that
// find_kernel() gave out before; anything else is cudaErrorInvalidDeviceFunction. May load code;
// needs open_driver() to have succeeded.
cudaError_t find_kernel(const void* host_function, CUkernel* kernel);

// What the runtime itself loads or is given counts as a handle, too.
void remember_kernel(CUkernel kernel);

// cudaErrorInvalidSymbol: not registered.
cudaError_t find_variable(const void* host_variable, CUdeviceptr* address, size_t* bytes);

}  // namespace simgpu::runtime
