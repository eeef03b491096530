// SPDX-License-Identifier: Apache-2.0
// A program on one stream that needs twice the memory there is, over a slow link: does its
// launching thread run ahead of the GPU while buffers go out, and while they come back? Prints, in
// milliseconds: out HOST TOTAL, in HOST TOTAL. HOST is the time until everything was submitted,
// TOTAL until it had run. Exit status 1 if a byte is wrong.

#include <cuda.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr size_t kBytes = 4 << 20;
constexpr int kBuffers = 24;

void must(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "run_ahead: %s: error %d\n", call, result);
  std::exit(1);
}
#define MUST(call) must((call), #call)

double now_ms() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int main() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  MUST(cuInit(0));
  MUST(cuDeviceGet(&device, 0));
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  unsigned char* bytes = nullptr;
  MUST(cuMemHostAlloc(reinterpret_cast<void**>(&bytes), kBuffers, 0));

  CUdeviceptr first = 0;  // whatever is set up at the first allocation is not what is measured here
  MUST(cuMemAllocAsync(&first, kBytes, stream));
  MUST(cuMemFreeAsync(first, stream));
  MUST(cuStreamSynchronize(stream));

  std::vector<CUdeviceptr> buffers(kBuffers);
  double begin = now_ms();
  for (int i = 0; i < kBuffers; ++i) {
    MUST(cuMemAllocAsync(&buffers[i], kBytes, stream));
    MUST(cuMemsetD8Async(buffers[i], static_cast<unsigned char>(i + 1), kBytes, stream));
    for (int op = 0; op < 4; ++op)
      MUST(cuMemsetD8Async(buffers[i], static_cast<unsigned char>(i + 1), 64, stream));
  }
  double submitted = now_ms();
  MUST(cuStreamSynchronize(stream));
  double done = now_ms();
  std::printf("out %.1f %.1f\n", submitted - begin, done - begin);

  begin = now_ms();
  for (int i = kBuffers - 1; i >= 0; --i) {
    MUST(cuMemcpyDtoHAsync(bytes + i, buffers[i] + kBytes / 2, 1, stream));
    MUST(cuMemFreeAsync(buffers[i], stream));
  }
  submitted = now_ms();
  MUST(cuStreamSynchronize(stream));
  done = now_ms();
  std::printf("in %.1f %.1f\n", submitted - begin, done - begin);
  for (int i = 0; i < kBuffers; ++i) {
    if (bytes[i] == i + 1) continue;
    std::fprintf(stderr, "run_ahead: buffer %d holds %d\n", i, bytes[i]);
    return 1;
  }
  return 0;
}
