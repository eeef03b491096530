// SPDX-License-Identifier: Apache-2.0
#pragma once
// Entries as programs of older CUDA versions get them: OLDER(cuEventDestroy, 2000) is what
// cuGetProcAddress gives for that name to a program of CUDA 2.0, with its type of that time.

#include "tests/simgpu/tests/support/gpu.h"

// The header has the types of the oldest entries for the driver itself only. What some of them
// take, of 32 bits, is not used here.
using CUdeviceptr_v1 = unsigned int;
struct CUDA_ARRAY_DESCRIPTOR_v1;
struct CUDA_ARRAY3D_DESCRIPTOR_v1;
struct CUDA_MEMCPY2D_v1;
struct CUDA_MEMCPY3D_v1;
#define __CUDA_API_VERSION_INTERNAL
#include <cudaTypedefs.h>
#undef __CUDA_API_VERSION_INTERNAL

namespace simgpu::test {

template <class Function>
Function older_entry(const char* name, int version) {
  void* address = nullptr;
  CUdriverProcAddressQueryResult status{};
  EXPECT_EQ(cuGetProcAddress(name, &address, version, CU_GET_PROC_ADDRESS_DEFAULT, &status),
            CUDA_SUCCESS);
  EXPECT_NE(address, nullptr) << name;
  return reinterpret_cast<Function>(address);
}

}  // namespace simgpu::test

#define OLDER(name, version) older_entry<PFN_##name##_v##version>(#name, version)
