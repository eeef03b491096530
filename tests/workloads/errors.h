// SPDX-License-Identifier: Apache-2.0
#pragma once
// What can go wrong, each kind with its own exit status.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace gpt {

constexpr int kExitBadOption = 2;
constexpr int kExitOutOfMemory = 3;
constexpr int kExitCudaError = 4;

// An option, or a file that an option names, cannot be used.
struct BadOption : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Device memory is exhausted; the program stops in order.
struct OutOfMemory : std::runtime_error {
  OutOfMemory(int64_t step, int64_t bytes, const std::string& role)
      : std::runtime_error("out of memory: step " + std::to_string(step) + ", allocating " +
                           std::to_string(bytes) + " for " + role) {}
};

// Any other failure of a CUDA call.
struct CudaError : std::runtime_error {
  CudaError(const std::string& api, cudaError_t code)
      : std::runtime_error(api + " failed: " + cudaGetErrorName(code) + " (" +
                           std::to_string(int(code)) + "), " + cudaGetErrorString(code)) {}
};

inline void check_cuda(cudaError_t code, const char* api) {
  if (code != cudaSuccess) throw CudaError(api, code);
}

// CHECK_CUDA(cudaMalloc, &pointer, bytes) calls it and throws a CudaError that names it.
#define CHECK_CUDA(function, ...) ::gpt::check_cuda(function(__VA_ARGS__), #function)

}  // namespace gpt
