// SPDX-License-Identifier: Apache-2.0
#pragma once
// Building graphs, for tests.

#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {

inline constexpr uint32_t kGraphWords = 64;
inline constexpr size_t kGraphBytes = 4 * kGraphWords;

inline CUgraph new_graph() {
  CUgraph graph = nullptr;
  EXPECT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  return graph;
}

// Arguments of add and store, and a node of either.
struct WordsKernel {
  WordsKernel(CUfunction function, CUdeviceptr at, uint32_t by) : p(at), value(by) {
    params.func = function;
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = kGraphWords;
    params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = arguments;
  }
  WordsKernel(const WordsKernel&) = delete;
  WordsKernel& operator=(const WordsKernel&) = delete;
  CUgraphNode add_to(CUgraph graph, const std::vector<CUgraphNode>& before = {}) const {
    CUgraphNode node = nullptr;
    EXPECT_EQ(cuGraphAddKernelNode(&node, graph, before.data(), before.size(), &params),
              CUDA_SUCCESS);
    return node;
  }
  CUdeviceptr p;
  uint32_t count = kGraphWords;
  uint32_t value;
  void* arguments[3] = {&p, &count, &value};
  CUDA_KERNEL_NODE_PARAMS params = {};
};

inline CUDA_MEMCPY3D copy_of(CUdeviceptr to, CUdeviceptr from) {
  CUDA_MEMCPY3D what = {};
  what.srcMemoryType = what.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  what.srcDevice = from;
  what.dstDevice = to;
  what.WidthInBytes = kGraphBytes;
  what.Height = what.Depth = 1;
  return what;
}

inline CUgraphExec instantiate(CUgraph graph, unsigned long long flags = 0) {
  CUgraphExec exec = nullptr;
  EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, graph, flags), CUDA_SUCCESS);
  return exec;
}

}  // namespace simgpu::test
