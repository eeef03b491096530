// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small things that the tests of the runtime share.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <vector>

#define EXPECT_CUDA(call) EXPECT_EQ((call), cudaSuccess) << #call
#define ASSERT_CUDA(call) ASSERT_EQ((call), cudaSuccess) << #call

namespace simgpu::test {

// Device memory for the length of a scope.
template <class T>
class Buffer {
 public:
  explicit Buffer(size_t count) : bytes_(count * sizeof(T)) {
    EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&data_), bytes_));
  }
  ~Buffer() { EXPECT_CUDA(cudaFree(data_)); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  T* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  void put(const std::vector<T>& from) {
    EXPECT_CUDA(cudaMemcpy(data_, from.data(), bytes_, cudaMemcpyHostToDevice));
  }
  std::vector<T> get() const {
    std::vector<T> to(bytes_ / sizeof(T));
    EXPECT_CUDA(cudaMemcpy(to.data(), data_, bytes_, cudaMemcpyDeviceToHost));
    return to;
  }

 private:
  T* data_ = nullptr;
  size_t bytes_;
};

class Stream {
 public:
  Stream() { EXPECT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { EXPECT_CUDA(cudaStreamDestroy(stream_)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }  // NOLINT(google-explicit-constructor)

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace simgpu::test
