// SPDX-License-Identifier: Apache-2.0
// Stream-ordered allocation, the default pool, and what a program may ask about its memory.

#include <cstring>

#include "tests/clients/client.h"

namespace clients {
namespace {

constexpr size_t kLayers = 24;

CUdeviceptr allocate_on(Client& client, CUstream stream, size_t bytes = kBytes) {
  CUdeviceptr at = 0;
  CHECK_CUDA(client.cuda.cuMemAllocAsync(&at, bytes, stream));
  return at;
}

// Buffers are used on one stream and freed on another that waits for it: what is allocated next
// must not disturb the first.
void freed_on_another_stream(Client& client) {
  CUstream first = nullptr;
  CUstream second = nullptr;
  CUevent used = nullptr;
  CHECK_CUDA(client.cuda.cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
  CHECK_CUDA(client.cuda.cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  CHECK_CUDA(client.cuda.cuEventCreate(&used, CU_EVENT_DISABLE_TIMING));
  client.stream = first;
  const CUdeviceptr sum = allocate_on(client, first);
  client.fill(sum, 1);
  std::vector<uint32_t> wanted = filled(1);
  for (int step = 0; step < 3; ++step) {
    std::vector<CUdeviceptr> stash;
    for (size_t i = 0; i < kLayers; ++i) {
      stash.push_back(allocate_on(client, first));
      client.fill(stash.back(), static_cast<uint32_t>(1000 * i));
    }
    for (size_t i = kLayers; i-- > 0;) {
      client.mix(sum, stash[i]);
      mix_on_host(wanted, filled(static_cast<uint32_t>(1000 * i)));
      CHECK_CUDA(client.cuda.cuEventRecord(used, first));
      CHECK_CUDA(client.cuda.cuStreamWaitEvent(second, used, 0));
      CHECK_CUDA(client.cuda.cuMemFreeAsync(stash[i], second));
      if (i % 4 == 0) {  // straight back into use, on the stream that freed it
        client.stream = second;
        const CUdeviceptr scratch = allocate_on(client, second);
        client.fill(scratch, 12345);
        CHECK_CUDA(client.cuda.cuMemFreeAsync(scratch, second));
        client.stream = first;
      }
    }
  }
  client.expect(sum, wanted);
  CHECK_CUDA(client.cuda.cuStreamSynchronize(second));
}

// With per-thread default streams NULL is the thread's own stream, also where something is freed on
// it: what is freed there can be used there again, though the legacy stream, behind a stream that
// waits for the host, would not come that far.
void null_stream_of_a_thread(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kLayers);
  const CUdeviceptr sum = client.allocate();
  std::vector<uint32_t> wanted = filled(2);
  void* page = nullptr;
  CHECK_CUDA(client.cuda.cuMemHostAlloc(&page, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  auto* flag = static_cast<volatile uint32_t*>(page);
  *flag = 0;
  CUstream waiting = nullptr;
  CHECK_CUDA(client.cuda.cuStreamCreate(&waiting, CU_STREAM_DEFAULT));
  const CUdeviceptr theirs = client.allocate();
  CHECK_CUDA(client.cuda.cuMemsetD32Async(theirs, 8, kWords, waiting));
  for (int op = 0; op < 20; ++op) client.fill(sum, 2);  // the crowd's last uses are long past
  CHECK_CUDA(client.cuda.cuStreamWaitValue32(waiting, reinterpret_cast<CUdeviceptr>(page), 1,
                                             CU_STREAM_WAIT_VALUE_EQ));
  for (uint32_t i = 0; i < 2 * kLayers; ++i) {
    const CUdeviceptr scratch = allocate_on(client, nullptr);
    client.fill(scratch, 77 * i);
    client.mix(sum, scratch);
    mix_on_host(wanted, filled(77 * i));
    CHECK_CUDA(client.cuda.cuMemFreeAsync(scratch, nullptr));
  }
  client.expect(sum, wanted);
  *flag = 1;
  for (size_t i = 0; i < buffers.size(); ++i)
    client.expect(buffers[i], filled(static_cast<uint32_t>(1000 * i)));
  client.expect(theirs, std::vector<uint32_t>(kWords, 8));
  client.disperse(buffers);
}

// Freed while work on another stream still reads it, as PyTorch without its cache frees: whatever
// comes into that memory next, on any stream, comes after.
void freed_while_busy(Client& client) {
  CUstream streams[2] = {};
  for (CUstream& stream : streams)
    CHECK_CUDA(client.cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  client.stream = streams[0];
  const std::vector<CUdeviceptr> buffers = client.crowd(kLayers);
  const CUdeviceptr sum = client.allocate();
  client.fill(sum, 3);
  std::vector<uint32_t> wanted = filled(3);
  for (uint32_t i = 0; i < kLayers; ++i) {
    client.stream = streams[0];
    const CUdeviceptr scratch = client.allocate();
    client.fill(scratch, 55 * i);
    client.mix(sum, scratch);
    mix_on_host(wanted, filled(55 * i));
    client.free(scratch);
    client.stream = streams[1];
    const CUdeviceptr other = client.allocate();
    client.fill(other, 12345);
    client.free(other);
  }
  client.stream = streams[0];
  client.expect(sum, wanted);
  client.disperse(buffers);
}

uint64_t attribute(Client& client, CUmemoryPool pool, CUmemPool_attribute which) {
  cuuint64_t value = 0;
  CHECK_CUDA(client.cuda.cuMemPoolGetAttribute(pool, which, &value));
  return value;
}

CUmemoryPool pool_of(Client& client, CUdeviceptr at) {
  CUmemoryPool pool = nullptr;
  CHECK_CUDA(client.cuda.cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, at));
  return pool;
}

void pool_statistics(Client& client) {
  CUmemoryPool pool = nullptr;
  CHECK_CUDA(client.cuda.cuDeviceGetDefaultMemPool(&pool, client.device));
  const uint64_t before = attribute(client, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
  CUstream stream = nullptr;
  CHECK_CUDA(client.cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  client.stream = stream;
  std::vector<CUdeviceptr> buffers;
  for (size_t i = 0; i < kLayers; ++i) {
    CUdeviceptr at = 0;
    CHECK_CUDA(client.cuda.cuMemAllocFromPoolAsync(&at, kBytes, pool, stream));
    client.fill(at, static_cast<uint32_t>(i));
    CHECK(pool_of(client, at) == pool);
    buffers.push_back(at);
  }
  CHECK(attribute(client, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == before + kLayers * kBytes);
  CHECK(attribute(client, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= before + kLayers * kBytes);
  for (const CUdeviceptr at : buffers) CHECK_CUDA(client.cuda.cuMemFreeAsync(at, stream));
  CHECK_CUDA(client.cuda.cuStreamSynchronize(stream));
  CHECK(attribute(client, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == before);
  CHECK(attribute(client, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) >= before + kLayers * kBytes);
  cuuint64_t zero = 0;
  CHECK_CUDA(client.cuda.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
  CHECK(attribute(client, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == before);
  const CUdeviceptr again = allocate_on(client, stream);
  CHECK(attribute(client, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == before + kBytes);
  CHECK_CUDA(client.cuda.cuMemFreeAsync(again, stream));
  CUdeviceptr little = 0;
  CHECK_CUDA(client.cuda.cuMemAllocAsync(&little, 100, stream));
  CHECK(pool_of(client, little) == pool);
  CHECK_CUDA(client.cuda.cuMemFreeAsync(little, stream));
  CHECK_CUDA(client.cuda.cuMemAlloc(&little, 100));
  CHECK(pool_of(client, little) == nullptr);
  CHECK_CUDA(client.cuda.cuMemFree(little));
  cuuint64_t threshold = 1 << 20;
  CHECK_CUDA(
      client.cuda.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  CHECK(attribute(client, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == threshold);
  const uint64_t reserved = attribute(client, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  CHECK_CUDA(client.cuda.cuMemPoolTrimTo(pool, 0));
  CHECK(attribute(client, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) < reserved);
}

// A buffer that has left answers as one that is there.
void queries(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kLayers);
  const CUdeviceptr inside = buffers[0] + 1000;
  CUdeviceptr base = 0;
  size_t bytes = 0;
  CHECK_CUDA(client.cuda.cuMemGetAddressRange(&base, &bytes, inside));
  CHECK(base == buffers[0] && bytes == kBytes);
  unsigned type = 0;
  CHECK_CUDA(client.cuda.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside));
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  CUdeviceptr device_pointer = 0;
  CHECK_CUDA(client.cuda.cuPointerGetAttribute(&device_pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                               inside));
  CHECK(device_pointer == inside);
  void* host = nullptr;
  CHECK_RESULT(client.cuda.cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, inside),
               CUDA_ERROR_INVALID_VALUE);
  CUcontext context = nullptr;
  int ordinal = -1;
  int managed = 0;
  type = 0;
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                  CU_POINTER_ATTRIBUTE_HOST_POINTER,
                                  CU_POINTER_ATTRIBUTE_IS_MANAGED};
  host = &host;
  void* values[] = {&context, &type, &ordinal, &host, &managed};
  CHECK_CUDA(client.cuda.cuPointerGetAttributes(5, wanted, values, inside));
  CHECK(context == client.context && type == CU_MEMORYTYPE_DEVICE && ordinal == 0 &&
        host == nullptr && managed == 0);
  size_t free = 0;
  size_t total = 0;
  CHECK_CUDA(client.cuda.cuMemGetInfo(&free, &total));
  CHECK(total >= free + kLayers * kBytes);
  // Freed is gone.
  client.disperse(buffers);
  CHECK_RESULT(client.cuda.cuMemGetAddressRange(&base, &bytes, inside), CUDA_ERROR_NOT_FOUND);
  CHECK_RESULT(client.cuda.cuMemFree(buffers[0]), CUDA_ERROR_INVALID_VALUE);
  CHECK_RESULT(client.cuda.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside),
               CUDA_ERROR_INVALID_VALUE);
}

void pitched(Client& client) {
  CUdeviceptr at = 0;
  size_t pitch = 0;
  CHECK_CUDA(client.cuda.cuMemAllocPitch(&at, &pitch, 1000, 300, 4));
  CHECK(pitch >= 1000 && pitch % 512 == 0);
  CHECK_RESULT(client.cuda.cuMemAllocPitch(&at, &pitch, 1000, 300, 3), CUDA_ERROR_INVALID_VALUE);
  CHECK_CUDA(client.cuda.cuMemsetD8(at, 9, pitch * 300));
  std::vector<uint8_t> row(1000);
  CHECK_CUDA(client.cuda.cuMemcpyDtoH(row.data(), at + 299 * pitch, row.size()));
  for (const uint8_t byte : row) CHECK(byte == 9);
  client.free(at);
}

// A single buffer that cannot fit gets the driver's own code, and nothing else is lost.
void too_much(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kLayers);
  CUdeviceptr at = 0;
  CHECK_RESULT(client.cuda.cuMemAlloc(&at, size_t{1} << 40), CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_RESULT(client.cuda.cuMemAlloc(&at, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_RESULT(client.cuda.cuMemAlloc(nullptr, kBytes), CUDA_ERROR_INVALID_VALUE);
  for (size_t i = 0; i < buffers.size(); ++i)
    client.expect(buffers[i], filled(static_cast<uint32_t>(1000 * i)));
  client.disperse(buffers);
}

}  // namespace

const std::vector<Scenario> kMemoryScenarios = {
    {"freed-on-another-stream", &freed_on_another_stream},
    {"null-stream-of-a-thread", &null_stream_of_a_thread},
    {"freed-while-busy", &freed_while_busy},
    {"pool-statistics", &pool_statistics},
    {"queries", &queries},
    {"pitched", &pitched},
    {"too-much", &too_much},
};

}  // namespace clients
