// SPDX-License-Identifier: Apache-2.0
#include "tests/workloads/tests/threads_runner.h"

#include <barrier>
#include <cmath>
#include <map>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

// What CUDA's headers would declare, as far as the kernels use it.
namespace {

struct Index {
  unsigned x, y, z;
};
thread_local Index threadIdx, blockIdx, blockDim;

constexpr int kShuffleWidth = 16;
std::barrier group_barrier(kShuffleWidth);
float exchanged[kShuffleWidth];

float __shfl_xor_sync(unsigned mask, float x, int step, int width) {
  if (width != kShuffleWidth || (mask >> ((threadIdx.y & 1) * 16) & 0xffff) != 0xffff) {
    throw std::runtime_error("a shuffle whose mask does not name its group");
  }
  exchanged[threadIdx.x] = x;
  group_barrier.arrive_and_wait();
  const float result = exchanged[threadIdx.x ^ unsigned(step)];
  group_barrier.arrive_and_wait();
  return result;
}

}  // namespace

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(count)
#define GPT_THREADS_AS_LANES
using std::fmaxf;
#include "tests/workloads/kernels/all.cuh"

namespace gpt {
namespace {

template <auto kernel>
struct Call;
template <typename... Parameters, void (*kernel)(Parameters...)>
struct Call<kernel> {
  template <size_t... i>
  static void with(void* const* arguments, std::index_sequence<i...>) {
    kernel(*static_cast<const Parameters*>(arguments[i])...);
  }
  static void run(void* const* arguments) {
    with(arguments, std::index_sequence_for<Parameters...>());
  }
};

using Runner = void (*)(void* const* arguments);
const std::map<std::string, Runner>& runners() {
  static const std::map<std::string, Runner> all = {
#define GPT_KERNEL(name, parameters, access, flops) {#name, &Call<&::name>::run},
#include "tests/workloads/kernels/kernels.def"
#undef GPT_KERNEL
  };
  return all;
}

}  // namespace

void run_on_threads(const std::string& name, const SimgpuLaunch& launch, void* const* arguments) {
  const Runner run = runners().at(name);
  const auto lane = [&](unsigned number) {
    blockDim = {launch.block[0], launch.block[1], launch.block[2]};
    for (unsigned z = 0; z < launch.grid[2]; ++z) {
      for (unsigned y = 0; y < launch.grid[1]; ++y) {
        for (unsigned x = 0; x < launch.grid[0]; ++x) {
          for (unsigned group = 0; group < launch.block[1]; ++group) {
            blockIdx = {x, y, z};
            threadIdx = {number, group, 0};
            run(arguments);
          }
        }
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < launch.block[0]; ++i) threads.emplace_back(lane, i);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace gpt
