// SPDX-License-Identifier: Apache-2.0
// What the runtime answers to requests at the edge, printed call by call: it must be the same
// whatever is loaded. Its first call of all is cudaMalloc. Between the requests more memory is in
// use than fits under a cap, and every word is compared.

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr uint32_t kWords = 64 << 10;
constexpr size_t kBytes = kWords * sizeof(uint32_t);
constexpr uint32_t kBuffers = 24;

__global__ void fill(uint32_t* to, uint32_t count, uint32_t seed) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    to[i] = seed + i;
}

void say(const char* what, cudaError_t result) {
  std::printf("%s: %d, then %d\n", what, result, cudaGetLastError());
}

void check(cudaError_t result, int line) {
  if (result == cudaSuccess) return;
  std::printf("line %d: %s\n", line, cudaGetErrorString(result));
  std::exit(1);
}
#define CHECK(call) check((call), __LINE__)

std::vector<uint32_t*> crowd() {
  std::vector<uint32_t*> buffers(kBuffers);
  for (uint32_t i = 0; i < kBuffers; ++i) {
    CHECK(cudaMalloc(&buffers[i], kBytes));
    fill<<<4, 64>>>(buffers[i], kWords, 1000 * i);
  }
  return buffers;
}

void look_at_all(const std::vector<uint32_t*>& buffers) {
  std::vector<uint32_t> found(kWords);
  for (uint32_t i = 0; i < kBuffers; ++i) {
    CHECK(cudaMemcpy(found.data(), buffers[i], kBytes, cudaMemcpyDeviceToHost));
    for (uint32_t word = 0; word < kWords; ++word) {
      if (found[word] == 1000 * i + word) continue;
      std::printf("buffer %u, word %u is %u\n", i, word, found[word]);
      std::exit(1);
    }
  }
}

void ask_for_much_and_nothing() {
  uint32_t* at = nullptr;
  say("nothing", cudaMalloc(&at, 0));
  std::printf("a pointer to nothing: %s\n", at == nullptr ? "null" : "not null");
  say("nowhere to", cudaMalloc(static_cast<uint32_t**>(nullptr), kBytes));
  say("a terabyte", cudaMalloc(&at, size_t{1} << 40));
  say("half of all addresses", cudaMalloc(&at, SIZE_MAX / 2));
  say("all addresses", cudaMalloc(&at, SIZE_MAX));
  say("a terabyte in stream order", cudaMallocAsync(&at, size_t{1} << 40, nullptr));
  size_t pitch = 0;
  say("a pitched terabyte", cudaMallocPitch(&at, &pitch, size_t{1} << 20, size_t{1} << 20));
}

void free_what_is_not_there(const std::vector<uint32_t*>& buffers) {
  say("free null", cudaFree(nullptr));
  say("free no pointer", cudaFree(reinterpret_cast<void*>(0x1234)));
  say("free inside", cudaFree(buffers[0] + 64));
  uint32_t* at = nullptr;
  CHECK(cudaMalloc(&at, kBytes));
  say("free", cudaFree(at));
  say("free again", cudaFree(at));
  CHECK(cudaMalloc(&at, 100));
  say("free a small one", cudaFree(at));
  say("free a small one again", cudaFree(at));
  CHECK(cudaMallocAsync(&at, kBytes, nullptr));
  say("free in stream order", cudaFreeAsync(at, nullptr));
  say("free in stream order again", cudaFreeAsync(at, nullptr));
}

}  // namespace

int main() {
  uint32_t* first = nullptr;
  say("the first call", cudaMalloc(&first, kBytes));
  say("free the first", cudaFree(first));
  for (int life = 0; life < 2; ++life) {
    std::vector<uint32_t*> buffers = crowd();
    ask_for_much_and_nothing();
    free_what_is_not_there(buffers);
    look_at_all(buffers);
    uint32_t* gone = buffers[0];
    CHECK(cudaDeviceSynchronize());
    say("reset", cudaDeviceReset());
    say("free what the reset took", cudaFree(gone));
  }
  const std::vector<uint32_t*> buffers = crowd();
  look_at_all(buffers);
  for (uint32_t* at : buffers) CHECK(cudaFree(at));
  std::puts("ok");
}
