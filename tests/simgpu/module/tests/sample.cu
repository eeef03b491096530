// SPDX-License-Identifier: Apache-2.0
// Kernels whose names, parameter layouts and results the tests know.

struct Pair {
  float* data;
  int count;
};
struct Large {
  unsigned char bytes[20000];
};

extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void layout(char a, Pair pair, short b, double c) {
  if (threadIdx.x == 0) pair.data[0] = static_cast<float>(a + pair.count + b + c);
}

extern "C" __global__ void large(Large large, int* out) {
  out[0] = large.bytes[19999];
}

// A sum per block in shared memory: barriers, dynamic shared memory, a loop.
extern "C" __global__ void block_sum(const float* in, float* out) {
  extern __shared__ float part[];
  __shared__ int rounds;
  if (threadIdx.x == 0) rounds = 0;
  part[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    if (threadIdx.x == 0) ++rounds;
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0] + rounds;
}

// Local memory behind a generic pointer, 64-bit arithmetic, a switch on data.
extern "C" __global__ void local_array(const int* in, long long* out, int n) {
  int seen[8] = {0};
  for (int i = 0; i < n; ++i) ++seen[in[i] & 7];
  long long code = 0;
  for (int i = 0; i < 8; ++i) code = code * 100 + seen[i];
  out[threadIdx.x] = code + threadIdx.x;
}

// Warp operations are beyond the interpreter: of unknown effect.
extern "C" __global__ void warp_sum(float* values) {
  float value = values[threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_down_sync(0xffffffffu, value, offset);
  }
  values[threadIdx.x] = value;
}

// Stays a function of its own in relocatable code, and is no kernel.
__device__ __noinline__ int triple(int value, const int* more) {
  return value * 3 + more[value];
}
extern "C" __global__ void calls(int* data) {
  data[0] = triple(data[1], data);
}
