// SPDX-License-Identifier: Apache-2.0
// Buffers that have left are needed one after the other, each behind a computation that hides a
// known part of the copy that brings it back. Prints "needed COUNT TOTAL": how many, and the
// milliseconds from the first submission to the last result. Exit status 1 if a byte is wrong.
//
//   exposed          the computation, a fill of 8 MiB, stands before each use
//   exposed alone    nothing is there to hide the copies

#include <cuda.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr size_t kBytes = 8 << 20;
constexpr int kNeeded = 4;
constexpr int kOthers = 8;  // fill the memory, so that those above leave

void must(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "exposed: %s: error %d\n", call, result);
  std::exit(1);
}
#define MUST(call) must((call), #call)

CUdeviceptr used(CUstream stream, unsigned char value) {
  CUdeviceptr at = 0;
  MUST(cuMemAllocAsync(&at, kBytes, stream));
  for (int op = 0; op < 20; ++op) MUST(cuMemsetD8Async(at, value, 64, stream));
  return at;
}

}  // namespace

int main(int count, char**) {
  const bool alone = count > 1;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  MUST(cuInit(0));
  MUST(cuDeviceGet(&device, 0));
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  unsigned char* bytes = nullptr;
  MUST(cuMemHostAlloc(reinterpret_cast<void**>(&bytes), kNeeded, 0));

  std::vector<CUdeviceptr> needed;
  std::vector<CUdeviceptr> others;
  for (int i = 0; i < kNeeded; ++i)
    needed.push_back(used(stream, static_cast<unsigned char>(i + 1)));
  for (int i = 0; i < kOthers; ++i) others.push_back(used(stream, 100));
  for (const CUdeviceptr at : others) MUST(cuMemFreeAsync(at, stream));
  const CUdeviceptr computed = used(stream, 50);
  MUST(cuStreamSynchronize(stream));

  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < kNeeded; ++i) {
    if (!alone) MUST(cuMemsetD8Async(computed, 51, kBytes, stream));
    MUST(cuMemcpyDtoHAsync(bytes + i, needed[i] + 10, 1, stream));
  }
  MUST(cuStreamSynchronize(stream));
  const std::chrono::duration<double, std::milli> total = Clock::now() - begin;
  std::printf("needed %d %.1f\n", kNeeded, total.count());
  for (int i = 0; i < kNeeded; ++i) {
    if (bytes[i] == i + 1) continue;
    std::fprintf(stderr, "exposed: buffer %d holds %d\n", i, bytes[i]);
    return 1;
  }
  return 0;
}
