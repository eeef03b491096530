// SPDX-License-Identifier: Apache-2.0
// The same through the shared runtime, with kernels launched by <<<>>>. Compiled twice: with the
// legacy default stream and with per-thread ones.

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr uint32_t kWords = 64 << 10;
constexpr size_t kBytes = kWords * sizeof(uint32_t);
constexpr uint32_t kLayers = 24;

__global__ void fill(uint32_t* to, uint32_t count, uint32_t seed) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    to[i] = seed + i;
}

__global__ void mix(uint32_t* to, const uint32_t* from, uint32_t count) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    to[i] = to[i] * 31 + from[i];
  }
}

void check(cudaError_t result, int line) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "client: line %d: %s\n", line, cudaGetErrorString(result));
  std::_Exit(1);
}
#define CHECK(call) check((call), __LINE__)

}  // namespace

int main(int count, char** arguments) {
  const bool ordered = count > 1 && arguments[1][0] == 'a';  // "async"
  uint32_t* sum = nullptr;
  CHECK(cudaMalloc(&sum, kBytes));
  for (int step = 0; step < 2; ++step) {
    std::vector<uint32_t> wanted(kWords);
    for (uint32_t i = 0; i < kWords; ++i) wanted[i] = 7 + i;
    fill<<<4, 64>>>(sum, kWords, 7);
    std::vector<uint32_t*> stash(kLayers);
    for (uint32_t i = 0; i < kLayers; ++i) {
      CHECK(ordered ? cudaMallocAsync(&stash[i], kBytes, 0) : cudaMalloc(&stash[i], kBytes));
      fill<<<4, 64>>>(stash[i], kWords, 1000 * i);
    }
    for (uint32_t i = kLayers; i-- > 0;) {
      mix<<<4, 64>>>(sum, stash[i], kWords);
      for (uint32_t word = 0; word < kWords; ++word)
        wanted[word] = wanted[word] * 31 + 1000 * i + word;
      CHECK(ordered ? cudaFreeAsync(stash[i], 0) : cudaFree(stash[i]));
    }
    CHECK(cudaGetLastError());
    std::vector<uint32_t> found(kWords);
    CHECK(cudaMemcpy(found.data(), sum, kBytes, cudaMemcpyDeviceToHost));
    for (uint32_t i = 0; i < kWords; ++i) {
      if (found[i] == wanted[i]) continue;
      std::fprintf(stderr, "client: word %u is %u, not %u\n", i, found[i], wanted[i]);
      return 1;
    }
  }
  CHECK(cudaFree(sum));
  std::puts("ok");
}
