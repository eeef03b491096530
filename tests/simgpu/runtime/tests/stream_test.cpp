// SPDX-License-Identifier: Apache-2.0
// Streams, events and host functions through the runtime.

#include <atomic>

#include "tests/simgpu/runtime/tests/kernels.h"
#include "tests/simgpu/runtime/tests/support.h"

extern "C" cudaError_t cudaStreamGetId_ptsz(cudaStream_t, unsigned long long*);
extern "C" cudaError_t cudaMemsetAsync_ptsz(void*, int, size_t, cudaStream_t);
extern "C" cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t);

namespace simgpu::test {
namespace {

TEST(Streams, AnEventOrdersTwoStreams) {
  constexpr int kCount = 4096;
  Buffer<int> data(kCount);
  Buffer<int> copy(kCount);
  Stream first;
  Stream second;
  cudaEvent_t done = nullptr;
  ASSERT_CUDA(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  launch_fill(data.data(), 3, kCount, first);
  EXPECT_CUDA(cudaEventRecord(done, first));
  EXPECT_CUDA(cudaStreamWaitEvent(second, done, 0));
  EXPECT_CUDA(
      cudaMemcpyAsync(copy.data(), data.data(), data.bytes(), cudaMemcpyDeviceToDevice, second));
  EXPECT_CUDA(cudaStreamSynchronize(second));
  EXPECT_CUDA(cudaEventQuery(done));
  EXPECT_EQ(copy.get()[kCount - 1], 3 + kCount - 1);
  EXPECT_CUDA(cudaEventDestroy(done));
}

TEST(Streams, NotReadyIsRememberedUntilItIsAskedFor) {
  Stream stream;
  // A host function that holds the stream until it is let go.
  static std::atomic<bool> go;
  go = false;
  EXPECT_CUDA(cudaLaunchHostFunc(
      stream,
      [](void*) {
        while (!go) {
        }
      },
      nullptr));
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  go = true;
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_CUDA(cudaStreamQuery(stream));
}

TEST(Streams, HostFunctionsRunInOrder) {
  Stream stream;
  struct State {
    int order = 0;
    int host = 0;
    int callback = 0;
    cudaError_t status = cudaErrorUnknown;
  } state;
  EXPECT_CUDA(cudaLaunchHostFunc(
      stream,
      [](void* data) { static_cast<State*>(data)->host = ++static_cast<State*>(data)->order; },
      &state));
  EXPECT_CUDA(cudaStreamAddCallback(
      stream,
      [](cudaStream_t, cudaError_t status, void* data) {
        static_cast<State*>(data)->callback = ++static_cast<State*>(data)->order;
        static_cast<State*>(data)->status = status;
      },
      &state, 0));
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(state.host, 1);
  EXPECT_EQ(state.callback, 2);
  EXPECT_EQ(state.status, cudaSuccess);
}

TEST(Streams, ZeroMeansAnotherStreamPerFlavor) {
  unsigned long long legacy = 0;
  unsigned long long per_thread = 0;
  EXPECT_CUDA(cudaStreamGetId(nullptr, &legacy));
  EXPECT_CUDA(cudaStreamGetId_ptsz(nullptr, &per_thread));
  EXPECT_NE(legacy, per_thread);
  unsigned long long by_handle = 0;
  EXPECT_CUDA(cudaStreamGetId(cudaStreamPerThread, &by_handle));
  EXPECT_EQ(by_handle, per_thread);
  Buffer<unsigned char> data(16);
  EXPECT_CUDA(cudaMemsetAsync_ptsz(data.data(), 9, 16, nullptr));
  EXPECT_CUDA(cudaStreamSynchronize_ptsz(nullptr));
  EXPECT_EQ(data.get()[15], 9);
}

TEST(Streams, KnowTheirFlagsPriorityAndCaptureState) {
  int least = 1;
  int greatest = 1;
  EXPECT_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT_EQ(least, 0);
  EXPECT_LT(greatest, least);
  cudaStream_t stream = nullptr;
  ASSERT_CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
  int priority = 1;
  unsigned flags = 0;
  int device = -1;
  EXPECT_CUDA(cudaStreamGetPriority(stream, &priority));
  EXPECT_EQ(priority, greatest);
  EXPECT_CUDA(cudaStreamGetFlags(stream, &flags));
  EXPECT_EQ(flags, unsigned{cudaStreamNonBlocking});
  EXPECT_CUDA(cudaStreamGetDevice(stream, &device));
  EXPECT_EQ(device, 0);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  EXPECT_CUDA(cudaStreamIsCapturing(stream, &status));
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
  status = cudaStreamCaptureStatusActive;
  EXPECT_CUDA(
      cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, nullptr, nullptr, nullptr));
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  EXPECT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
  EXPECT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_CUDA(cudaStreamDestroy(stream));
}

TEST(Events, MeasureTimeUnlessToldNotTo) {
  Stream stream;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  cudaEvent_t silent = nullptr;
  ASSERT_CUDA(cudaEventCreate(&begin));
  ASSERT_CUDA(cudaEventCreate(&end));
  ASSERT_CUDA(cudaEventCreateWithFlags(&silent, cudaEventDisableTiming));
  EXPECT_CUDA(cudaEventRecord(begin, stream));
  EXPECT_CUDA(cudaEventRecordWithFlags(end, stream, cudaEventRecordDefault));
  EXPECT_CUDA(cudaEventRecord(silent, stream));
  EXPECT_CUDA(cudaEventSynchronize(end));
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  float milliseconds = -1;
  EXPECT_CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
  EXPECT_GE(milliseconds, 0.0F);
  EXPECT_LT(milliseconds, 10000.0F);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, silent), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  EXPECT_CUDA(cudaEventDestroy(begin));
  EXPECT_CUDA(cudaEventDestroy(end));
  EXPECT_CUDA(cudaEventDestroy(silent));
}

}  // namespace
}  // namespace simgpu::test
