// SPDX-License-Identifier: Apache-2.0
// What goes wrong in programs and ends there: the driver refuses a call, a context goes and comes
// back as another. Buffers move on as before.

#include <cstdio>
#include <thread>

#include "tests/clients/client.h"

namespace clients {
namespace {

constexpr uint32_t kCrowd = 20;

void look_at_all(Client& client, const std::vector<CUdeviceptr>& buffers) {
  for (size_t i = 0; i < buffers.size(); ++i)
    client.expect(buffers[i], filled(static_cast<uint32_t>(1000 * i)));
}

// The program gets the driver's own code, and that is all that comes of it.
void refused_calls(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CUstream stream = nullptr;
  CHECK_CUDA(client.cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK_CUDA(client.cuda.cuStreamDestroy(stream));
  CHECK_RESULT(client.cuda.cuMemsetD32Async(buffers[0], 1, 4, stream), CUDA_ERROR_INVALID_HANDLE);
  CHECK_RESULT(client.cuda.cuMemFreeAsync(buffers[0], stream), CUDA_ERROR_INVALID_HANDLE);
  std::thread([&] {  // has no context
    CHECK_RESULT(client.cuda.cuMemsetD32(buffers[0], 1, 4), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_CUDA(client.cuda.cuCtxSetCurrent(client.context));
    client.expect(buffers[0], filled(0));
  })
      .join();
  CHECK_RESULT(client.cuda.cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
               CUDA_ERROR_INVALID_HANDLE);
  CUdeviceptr at = 0;
  CHECK_RESULT(client.cuda.cuMemAlloc(&at, ~size_t{0}), CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_RESULT(client.cuda.cuMemAlloc(&at, ~size_t{0} / 2), CUDA_ERROR_OUT_OF_MEMORY);
  look_at_all(client, buffers);
  const std::vector<CUdeviceptr> more = client.crowd(2 * kCrowd);  // than the card holds
  look_at_all(client, more);
  client.disperse(more);
  client.disperse(buffers);
}

// What the driver says to each call after an error that ended the context.
void after_a_fault(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CUstream stream = nullptr;
  CHECK_CUDA(client.cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUmemoryPool pool = nullptr;
  CHECK_CUDA(client.cuda.cuDeviceGetDefaultMemPool(&pool, client.device));
  client.fill(0x1234000, 1);
  CUdeviceptr at = 0;
  CUdeviceptr base = 0;
  size_t bytes = 0;
  uint32_t word = 0;
  unsigned type = 0;
  cuuint64_t used = 0;
  void* page = nullptr;
  CUevent event = nullptr;
  const Cuda& cuda = client.cuda;
  const auto say = [](const char* what, CUresult result) { std::printf("%s: %d\n", what, result); };
  say("synchronise", cuda.cuCtxSynchronize());
  say("free", cuda.cuMemFree(buffers[0]));
  say("free in stream order", cuda.cuMemFreeAsync(buffers[1], stream));
  say("free no pointer", cuda.cuMemFree(0x1234));
  say("allocate", cuda.cuMemAlloc(&at, kBytes));
  say("allocate in stream order", cuda.cuMemAllocAsync(&at, kBytes, stream));
  say("copy", cuda.cuMemcpyDtoH(&word, buffers[2], sizeof word));
  say("copy in stream order", cuda.cuMemcpyDtoDAsync(buffers[3], buffers[4], 16, stream));
  say("fill", cuda.cuMemsetD32(buffers[5], 1, 4));
  say("how much memory", cuda.cuMemGetInfo(&bytes, &bytes));
  say("what kind", cuda.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, buffers[6]));
  say("which range", cuda.cuMemGetAddressRange(&base, &bytes, buffers[6]));
  say("what the pool holds",
      cuda.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  say("pinned memory", cuda.cuMemHostAlloc(&page, 4096, 0));
  say("an event", cuda.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  say("a flag", cuda.cuStreamWriteValue32(stream, buffers[7], 1, 0));
  say("a host function", cuda.cuLaunchHostFunc(
                             stream, [](void*) {}, nullptr));
  say("a stream's end", cuda.cuStreamDestroy(stream));
}

// liboffload may hold all the memory there is when the driver needs some for code that is launched
// for the first time.
void code_without_room(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  for (int loaded = 0; loaded < 3; ++loaded) {
    CUmodule module = client.load();
    CUfunction fill = nullptr;
    CHECK_CUDA(client.cuda.cuModuleGetFunction(&fill, module, "fill"));
    CUdeviceptr to = buffers[0];
    uint32_t seed = 0;
    uint32_t words = kWords;
    client.launch(fill, {&to, &words, &seed}, {sizeof to, sizeof words, sizeof seed});
  }
  look_at_all(client, buffers);
  client.disperse(buffers);
}

// The handle of a context of the program's own, whose memory was the driver's, is the primary
// context's now.
void context_handle(Client& client) {
  CHECK_CUDA(client.cuda.cuDevicePrimaryCtxReset(client.device));
  CUcontext own = nullptr;
  CUctxCreateParams parameters{};
  CHECK_CUDA(client.cuda.cuCtxCreate(&own, &parameters, 0, client.device));
  CUdeviceptr theirs = 0;
  CHECK_CUDA(client.cuda.cuMemAlloc(&theirs, kBytes));
  CHECK_CUDA(client.cuda.cuMemFree(theirs));
  CHECK_CUDA(client.cuda.cuCtxDestroy(own));
  client.start();
  CHECK(client.context == own);  // else this is no test
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  look_at_all(client, buffers);
  client.disperse(buffers);
}

// Address space is not used up by contexts that came and went.
void many_resets(Client& client) {
  for (int life = 0; life < 60; ++life) {
    const CUdeviceptr at = client.allocate();
    client.fill(at, 1);
    CHECK_CUDA(client.cuda.cuCtxSynchronize());
    CHECK_CUDA(client.cuda.cuDevicePrimaryCtxReset(client.device));
    client.start();
  }
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  look_at_all(client, buffers);
  client.disperse(buffers);
}

// What a context of the program's own has is the driver's affair. When it runs out there, the
// summary says so.
void memory_of_own_context(Client& client) {
  const CUdeviceptr at = client.allocate();
  CUctxCreateParams parameters{};
  CUcontext context = nullptr;
  CHECK_CUDA(client.cuda.cuCtxCreate(&context, &parameters, 0, client.device));
  CUdeviceptr there = 0;
  CHECK_CUDA(client.cuda.cuMemAlloc(&there, kBytes));
  CHECK_CUDA(client.cuda.cuMemFree(there));
  CHECK_RESULT(client.cuda.cuMemAlloc(&there, size_t{1} << 30), CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_CUDA(client.cuda.cuCtxSetCurrent(client.context));
  client.free(at);
}

}  // namespace

const std::vector<Scenario> kAccidentScenarios = {
    {"refused-calls", &refused_calls},
    {"code-without-room", &code_without_room},
    {"context-handle", &context_handle},
    {"many-resets", &many_resets},
    {"memory-of-own-context", &memory_of_own_context},
    {"after-a-fault", &after_a_fault},
};

}  // namespace clients
