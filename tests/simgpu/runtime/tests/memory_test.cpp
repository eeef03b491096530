// SPDX-License-Identifier: Apache-2.0
// Allocation, copies and fills through the runtime.

#include <cstring>
#include <numeric>

#include "tests/simgpu/runtime/tests/support.h"

namespace simgpu::test {
namespace {

TEST(Memory, ZeroBytesAndNullAreNoErrors) {
  void* pointer = reinterpret_cast<void*>(8);
  EXPECT_CUDA(cudaMalloc(&pointer, 0));
  EXPECT_EQ(pointer, nullptr);
  EXPECT_CUDA(cudaFree(nullptr));
  EXPECT_CUDA(cudaFreeHost(nullptr));
  EXPECT_CUDA(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
}

TEST(Memory, OutOfMemoryIsReportedAndLeavesNothingBehind) {
  void* pointer = nullptr;
  EXPECT_EQ(cudaMalloc(&pointer, size_t{1} << 50), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_CUDA(cudaMalloc(&pointer, 4096));
  EXPECT_CUDA(cudaFree(pointer));
}

TEST(Memory, CopiesGoWhereTheirKindSays) {
  Buffer<int> a(1000);
  Buffer<int> b(1000);
  std::vector<int> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 5);
  a.put(numbers);
  EXPECT_CUDA(cudaMemcpy(b.data(), a.data(), a.bytes(), cudaMemcpyDeviceToDevice));
  EXPECT_EQ(b.get(), numbers);
  std::vector<int> back(1000);
  EXPECT_CUDA(cudaMemcpy(back.data(), b.data(), b.bytes(), cudaMemcpyDefault));
  EXPECT_EQ(back, numbers);
  EXPECT_CUDA(cudaMemcpy(back.data(), numbers.data() + 1, 4, cudaMemcpyHostToHost));
  EXPECT_EQ(back[0], 6);
  EXPECT_EQ(cudaMemcpy(back.data(), b.data(), 4, static_cast<cudaMemcpyKind>(7)),
            cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidMemcpyDirection);
}

TEST(Memory, FillsWriteBytes) {
  Buffer<unsigned char> a(64);
  EXPECT_CUDA(cudaMemset(a.data(), 0, 64));
  EXPECT_CUDA(cudaMemset(a.data() + 3, 0x1ff, 5));  // the low byte counts
  const auto bytes = a.get();
  EXPECT_EQ(bytes[2], 0);
  EXPECT_EQ(bytes[3], 0xff);
  EXPECT_EQ(bytes[7], 0xff);
  EXPECT_EQ(bytes[8], 0);
}

TEST(Memory, RectanglesKeepTheirPitch) {
  unsigned char* device = nullptr;
  size_t pitch = 0;
  ASSERT_CUDA(cudaMallocPitch(reinterpret_cast<void**>(&device), &pitch, 100, 4));
  EXPECT_GE(pitch, 100U);
  EXPECT_EQ(pitch % 32, 0U);
  EXPECT_CUDA(cudaMemset2D(device, pitch, 7, pitch, 4));
  std::vector<unsigned char> host(3 * 10);
  std::iota(host.begin(), host.end(), static_cast<unsigned char>(100));
  EXPECT_CUDA(cudaMemcpy2D(device + 1, pitch, host.data(), 10, 8, 3, cudaMemcpyHostToDevice));
  std::vector<unsigned char> rows(4 * pitch);
  EXPECT_CUDA(cudaMemcpy(rows.data(), device, rows.size(), cudaMemcpyDeviceToHost));
  EXPECT_EQ(rows[0], 7);
  EXPECT_EQ(rows[1], 100);
  EXPECT_EQ(rows[8], 107);
  EXPECT_EQ(rows[9], 7);
  EXPECT_EQ(rows[2 * pitch + 1], 120);
  EXPECT_EQ(rows[3 * pitch + 1], 7);
  EXPECT_EQ(cudaMemcpy2D(device, 4, host.data(), 10, 8, 3, cudaMemcpyHostToDevice),
            cudaErrorInvalidPitchValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidPitchValue);
  EXPECT_CUDA(cudaFree(device));
}

TEST(Memory, PinnedMemoryCopiesInStreamOrder) {
  constexpr size_t kCount = 1 << 16;
  int* pinned = nullptr;
  ASSERT_CUDA(cudaMallocHost(reinterpret_cast<void**>(&pinned), kCount * sizeof(int)));
  std::iota(pinned, pinned + kCount, 0);
  Buffer<int> device(kCount);
  {
    Stream stream;
    EXPECT_CUDA(
        cudaMemcpyAsync(device.data(), pinned, device.bytes(), cudaMemcpyHostToDevice, stream));
    EXPECT_CUDA(cudaMemsetAsync(device.data(), 0, 4 * sizeof(int), stream));
    EXPECT_CUDA(
        cudaMemcpyAsync(pinned, device.data(), device.bytes(), cudaMemcpyDeviceToHost, stream));
    EXPECT_CUDA(cudaStreamSynchronize(stream));
  }
  EXPECT_EQ(pinned[3], 0);
  EXPECT_EQ(pinned[4], 4);
  EXPECT_EQ(pinned[kCount - 1], static_cast<int>(kCount - 1));
  EXPECT_CUDA(cudaFreeHost(pinned));
}

TEST(Memory, RegisteredMemoryHasADevicePointer) {
  std::vector<char> memory(3 * 4096);
  char* page = memory.data() + 4096 - reinterpret_cast<uintptr_t>(memory.data()) % 4096;
  EXPECT_CUDA(cudaHostRegister(page, 4096, cudaHostRegisterDefault));
  void* device = nullptr;
  EXPECT_CUDA(cudaHostGetDevicePointer(&device, page, 0));
  EXPECT_NE(device, nullptr);
  EXPECT_CUDA(cudaHostUnregister(page));
  EXPECT_EQ(cudaHostUnregister(page), cudaErrorHostMemoryNotRegistered);
  EXPECT_EQ(cudaGetLastError(), cudaErrorHostMemoryNotRegistered);
}

TEST(Memory, PointersAreKnownByWhatTheyAre) {
  Buffer<int> device(16);
  void* pinned = nullptr;
  ASSERT_CUDA(cudaHostAlloc(&pinned, 4096, cudaHostAllocDefault));
  int ordinary = 0;
  cudaPointerAttributes attributes{};
  EXPECT_CUDA(cudaPointerGetAttributes(&attributes, device.data() + 3));
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  EXPECT_EQ(attributes.devicePointer, device.data() + 3);
  EXPECT_EQ(attributes.hostPointer, nullptr);
  EXPECT_CUDA(cudaPointerGetAttributes(&attributes, pinned));
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(attributes.hostPointer, pinned);
  EXPECT_CUDA(cudaPointerGetAttributes(&attributes, &ordinary));
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_CUDA(cudaFreeHost(pinned));
}

TEST(Pools, UsedBytesFollowStreamOrderedAllocations) {
  cudaMemPool_t pool = nullptr;
  ASSERT_CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
  const auto used = [&] {
    unsigned long long bytes = 0;
    EXPECT_CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &bytes));
    return bytes;
  };
  const unsigned long long before = used();
  Stream stream;
  void* pointer = nullptr;
  ASSERT_CUDA(cudaMallocAsync(&pointer, 1 << 20, stream));
  EXPECT_GE(used(), before + (1 << 20));
  EXPECT_CUDA(cudaMemsetAsync(pointer, 1, 1 << 20, stream));
  EXPECT_CUDA(cudaFreeAsync(pointer, stream));
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(used(), before);
  EXPECT_CUDA(cudaMemPoolTrimTo(pool, 0));
}

TEST(Pools, APoolOfOnesOwn) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  cudaMemPool_t pool = nullptr;
  ASSERT_CUDA(cudaMemPoolCreate(&pool, &properties));
  unsigned long long threshold = 12345678;
  EXPECT_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  threshold = 0;
  EXPECT_CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  EXPECT_EQ(threshold, 12345678U);
  Stream stream;
  void* pointer = nullptr;
  EXPECT_CUDA(cudaMallocFromPoolAsync(&pointer, 4096, pool, stream));
  EXPECT_NE(pointer, nullptr);
  EXPECT_CUDA(cudaFreeAsync(pointer, stream));
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_CUDA(cudaMemPoolDestroy(pool));
}

TEST(Memory, FreeAndTotalMoveWithAllocations) {
  size_t before = 0;
  size_t total = 0;
  ASSERT_CUDA(cudaMemGetInfo(&before, &total));
  EXPECT_GT(total, 0U);
  EXPECT_LE(before, total);
  {
    Buffer<char> big(32 << 20);
    size_t during = 0;
    EXPECT_CUDA(cudaMemGetInfo(&during, &total));
    EXPECT_EQ(before - during, size_t{32} << 20);
  }
}

}  // namespace
}  // namespace simgpu::test
