// SPDX-License-Identifier: Apache-2.0
#pragma once
// The dialect as CUDA: one lane is one thread, kLanes consecutive threads (half a warp) are a
// group.

#define KERNEL(name, ...) \
  extern "C" __global__ void __launch_bounds__(kLanes* kGroupsPerBlock) name(__VA_ARGS__)
#define LANE_FUNCTION static __device__ __forceinline__
#define LANE_MEMBER __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#define UNROLL_THREAD UNROLL  // so that an array of a thread stays in registers
#define group_x() int(blockIdx.x * blockDim.y + threadIdx.y)
#define group_y() int(blockIdx.y)
#define group_z() int(blockIdx.z)

using Lanes = float;
using LaneMask = bool;

constexpr bool kManyVectorRegisters = true;

LANE_FUNCTION Lanes broadcast(float x) {
  return x;
}
LANE_FUNCTION Lanes lane_numbers() {
  return float(threadIdx.x);
}
LANE_FUNCTION Lanes load(const float* p) {
  return p[threadIdx.x];
}
LANE_FUNCTION void store(float* p, Lanes x) {
  p[threadIdx.x] = x;
}
LANE_FUNCTION Lanes gather(const float* p, size_t stride, int count) {
  return int(threadIdx.x) < count ? p[threadIdx.x * stride] : 0.0f;
}
LANE_FUNCTION void scatter(float* p, size_t stride, int count, Lanes x) {
  if (int(threadIdx.x) < count) p[threadIdx.x * stride] = x;
}
LANE_FUNCTION Lanes load_some(const float* p, int count) {
  return gather(p, 1, count);
}
LANE_FUNCTION void store_some(float* p, int count, Lanes x) {
  scatter(p, 1, count, x);
}
LANE_FUNCTION void store_one(float* p, float x) {
  if (threadIdx.x == 0) *p = x;
}

// The other half of the warp is another group, which may have left or taken another branch.
LANE_FUNCTION unsigned half_warp() {
  return 0xffffu << ((threadIdx.y & 1) * kLanes);
}
LANE_FUNCTION float sum_lanes(Lanes x) {
  UNROLL for (int step = kLanes / 2; step > 0; step /= 2) {
    x += __shfl_xor_sync(half_warp(), x, step, kLanes);
  }
  return x;
}
LANE_FUNCTION float max_lanes(Lanes x) {
  UNROLL for (int step = kLanes / 2; step > 0; step /= 2) {
    x = fmaxf(x, __shfl_xor_sync(half_warp(), x, step, kLanes));
  }
  return x;
}

LANE_FUNCTION Lanes select(LaneMask mask, Lanes yes, Lanes no) {
  return mask ? yes : no;
}
LANE_FUNCTION Lanes larger(Lanes a, Lanes b) {
  return fmaxf(a, b);
}
LANE_FUNCTION Lanes square_root(Lanes x) {
  return sqrtf(x);
}
LANE_FUNCTION Lanes logarithm(Lanes x) {
  return logf(x);
}
LANE_FUNCTION Lanes exponential(Lanes x) {
  return expf(x);
}
LANE_FUNCTION float scalar_square_root(float x) {
  return sqrtf(x);
}
LANE_FUNCTION float scalar_logarithm(float x) {
  return logf(x);
}
