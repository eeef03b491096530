// SPDX-License-Identifier: Apache-2.0
// Capture and graphs through the runtime.

#include "tests/simgpu/runtime/tests/kernels.h"
#include "tests/simgpu/runtime/tests/support.h"

namespace simgpu::test {
namespace {

constexpr int kCount = 1000;

TEST(RuntimeGraphs, CaptureInstantiateLaunch) {
  Buffer<int> data(kCount);
  Buffer<int> copy(kCount);
  Stream stream;
  data.put(std::vector<int>(kCount, 0));
  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  launch_fill(data.data(), 5, kCount, stream);
  EXPECT_CUDA(
      cudaMemcpyAsync(copy.data(), data.data(), data.bytes(), cudaMemcpyDeviceToDevice, stream));
  void* refused = nullptr;
  EXPECT_CUDA(cudaGetLastError());
  cudaStreamCaptureStatus status{};
  EXPECT_CUDA(cudaStreamIsCapturing(stream, &status));
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
  EXPECT_EQ(data.get()[1], 0);
  cudaGraphExec_t exec = nullptr;
  ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_CUDA(cudaGraphLaunch(exec, stream));
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(copy.get()[10], 15);
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
  EXPECT_CUDA(cudaGraphDestroy(graph));
  // What spoils a capture is the runtime's error, too.
  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_EQ(cudaMalloc(&refused, 64), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorStreamCaptureInvalidated);
}

TEST(RuntimeGraphs, NodesAndTheirParameters) {
  Buffer<int> data(kCount);
  std::vector<int> out(kCount);
  int* pointer = data.data();
  int value = 7;
  int count = kCount;
  void* arguments[] = {&pointer, &value, &count};
  cudaKernelNodeParams kernel = {};
  kernel.func = const_cast<void*>(fill_function());
  kernel.gridDim = dim3(8);
  kernel.blockDim = dim3(128);
  kernel.kernelParams = arguments;
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t fill = nullptr;
  ASSERT_CUDA(cudaGraphAddKernelNode(&fill, graph, nullptr, 0, &kernel));
  cudaGraphNode_t copy = nullptr;
  ASSERT_CUDA(cudaGraphAddMemcpyNode1D(&copy, graph, &fill, 1, out.data(), data.data(),
                                       data.bytes(), cudaMemcpyDeviceToHost));
  cudaGraphExec_t exec = nullptr;
  ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  Stream stream;
  EXPECT_CUDA(cudaGraphLaunch(exec, stream));
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(out[2], 9);
  cudaKernelNodeParams asked = {};
  EXPECT_CUDA(cudaGraphKernelNodeGetParams(fill, &asked));
  EXPECT_EQ(asked.blockDim.x, 128U);
  value = 70;
  asked.kernelParams = arguments;
  EXPECT_CUDA(cudaGraphExecKernelNodeSetParams(exec, fill, &asked));
  EXPECT_CUDA(cudaGraphLaunch(exec, stream));
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(out[2], 72);
  size_t nodes = 0;
  EXPECT_CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 2U);
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
  EXPECT_CUDA(cudaGraphDestroy(graph));
}

}  // namespace
}  // namespace simgpu::test
