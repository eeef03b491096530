// SPDX-License-Identifier: Apache-2.0
#pragma once
// A program's side of the simulated GPU, for tests: a context, three small kernels in PTX, and
// helpers that say where they failed. Only the public API.

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/simgpu/tests/support/child.h"

#define CU(call) ASSERT_EQ(call, CUDA_SUCCESS)

namespace simgpu::test {

class Gpu {
 public:
  explicit Gpu(int device = 0);

  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction add = nullptr;    // add(p, n, value): p[i] += value
  CUfunction copy = nullptr;   // copy(to, from, n): to[i] = from[i]
  CUfunction store = nullptr;  // store(p, n, value): p[i] = value

  // On words of 4 bytes.
  CUresult launch_add(CUdeviceptr p, uint32_t count, uint32_t value, CUstream stream);
  CUresult launch_copy(CUdeviceptr to, CUdeviceptr from, uint32_t count, CUstream stream);
  CUresult launch_store(CUdeviceptr p, uint32_t count, uint32_t value, CUstream stream);
  // The words there, after everything is done.
  std::vector<uint32_t> read(CUdeviceptr p, uint32_t count);
};

CUstream new_stream(unsigned flags = CU_STREAM_NON_BLOCKING);
CUevent new_event(unsigned flags = CU_EVENT_DISABLE_TIMING);
CUdeviceptr allocate(size_t bytes);
void* allocate_pinned(size_t bytes);

// Holds a stream back until it is opened: a wait for a value in pinned memory.
class Gate {
 public:
  Gate();
  void close(CUstream stream);
  void open();
  void shut();  // for the next that is closed

 private:
  volatile uint32_t* word_;
};

CUmemAllocationProp device_properties(int device = 0);
CUmemAllocationProp host_properties();
CUresult give_access(CUdeviceptr address, size_t bytes, int device = 0);

// A buffer of one VMM handle, mapped and accessible.
struct Extent {
  size_t bytes = 0;
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0;
};
Extent new_extent(size_t bytes);
// A second mapping of its memory.
CUdeviceptr map_again(const Extent& extent);

}  // namespace simgpu::test
