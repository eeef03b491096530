// SPDX-License-Identifier: Apache-2.0
#pragma once
// The stand-in libraries' only way to the driver, as in the real ones, which carry a runtime of
// their own: dlopen("libcuda.so.1"), dlsym, cuGetProcAddress. So whoever watches the driver's
// doors sees them come by the same ones.

#include <cuda.h>

namespace simgpu::torch {

// Which of the two doors a library's launches use: cuBLAS asks cuGetProcAddress, cuBLASLt looks
// cuLaunchKernel up by dlsym.
enum class Door { kProcAddress, kSymbol };

struct Driver {
  CUresult (*library_load_data)(CUlibrary*, const void*, CUjit_option*, void**, unsigned,
                                CUlibraryOption*, void**, unsigned) = nullptr;
  CUresult (*library_get_kernel)(CUkernel*, CUlibrary, const char*) = nullptr;
  CUresult (*launch_kernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            unsigned, CUstream, void**, void**) = nullptr;
};

// Null: there is no driver, or it lacks one of these. Thread-safe; the first answer is final.
const Driver* driver(Door door);

}  // namespace simgpu::torch
