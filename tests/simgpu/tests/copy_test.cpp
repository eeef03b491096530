// SPDX-License-Identifier: Apache-2.0
// Copies and fills: what they move, what they refuse, when they return.
#include <algorithm>
#include <cstring>

#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {
namespace {

constexpr uint32_t kWords = 1024;
constexpr size_t kBytes = 4 * kWords;

// Seen on real drivers (JuliaGPU/CUDA.jl#258): a range over two allocations is
// CUDA_ERROR_INVALID_VALUE, though all of it is memory.
TEST(Copy, RangesMustLieInOneAllocation) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    // Two large allocations side by side: a copy over both is refused though all of it is memory.
    const size_t block = 4 << 20;
    const CUdeviceptr a = allocate(block);
    const CUdeviceptr b = allocate(block);
    EXPECT_EQ(b, a + block);
    std::vector<char> host(2 * block);
    EXPECT_EQ(cuMemcpyHtoD(a, host.data(), 2 * block), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemcpyHtoD(a + block - 8, host.data(), 16), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemcpyDtoH(host.data(), a + block - 8, 16), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemsetD8(a, 0, 2 * block), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemcpyHtoD(0x1234560000, host.data(), 16), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemcpyHtoD(b + block + 4096, host.data(), 16), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemcpyHtoD(a, host.data(), block));
    CU(cuMemcpyHtoD(a, nullptr, 0));
  }));
}

// CUDA Programming Guide, "Virtual Memory Management": mappings side by side serve as one range.
TEST(Copy, MappingsSideBySideAreOneRange) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    constexpr size_t kGranule = 2 << 20;
    CUdeviceptr address = 0;
    CU(cuMemAddressReserve(&address, 4 * kGranule, 0, 0, 0));
    const CUmemAllocationProp properties = device_properties();
    for (const size_t at : {kGranule, size_t{0}}) {  // the physical order is another
      CUmemGenericAllocationHandle handle = 0;
      CU(cuMemCreate(&handle, kGranule, &properties, 0));
      CU(cuMemMap(address + at, kGranule, 0, handle, 0));
    }
    CU(give_access(address, 2 * kGranule));
    std::vector<uint32_t> host(2 * kGranule / 4);
    for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<uint32_t>(i * 7);
    CU(cuMemcpyHtoD(address, host.data(), 2 * kGranule));
    CU(gpu.launch_add(address + kGranule - 8, 4, 1, nullptr));
    const std::vector<uint32_t> back = gpu.read(address, static_cast<uint32_t>(host.size()));
    EXPECT_EQ(back[kGranule / 4 - 3], host[kGranule / 4 - 3]);
    EXPECT_EQ(back[kGranule / 4 - 2], host[kGranule / 4 - 2] + 1);
    EXPECT_EQ(back[kGranule / 4 + 1], host[kGranule / 4 + 1] + 1);
    EXPECT_EQ(back.back(), host.back());
    EXPECT_EQ(cuMemcpyHtoD(address + kGranule, host.data(), 2 * kGranule),
              CUDA_ERROR_INVALID_VALUE);
  }));
}

// CUDA Driver API reference, "API synchronization behavior", Memcpy: what comes from pageable
// memory is staged.
TEST(Copy, PageableSourceIsReadAtTheCall) {
  for (const char* schedule : {"fifo", "late"}) {
    EXPECT_CLEAN(in_child({{"SIMGPU_SCHEDULE", schedule}}, [] {
      Gpu gpu;
      const CUdeviceptr p = allocate(kBytes);
      const CUstream stream = new_stream();
      Gate gate;
      gate.close(stream);
      std::vector<uint32_t> host(kWords, 8);
      CU(cuMemcpyHtoDAsync(p, host.data(), kBytes, stream));
      std::fill(host.begin(), host.end(), 9);
      gate.open();
      CU(cuStreamSynchronize(stream));
      EXPECT_EQ(gpu.read(p, kWords)[5], 8U);
    }));
  }
}

// CUDA Driver API reference, "API synchronization behavior", Memcpy: from pinned memory it is
// asynchronous.
TEST(Copy, PinnedSourceIsReadWhenTheCopyRuns) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    auto* host = static_cast<uint32_t*>(allocate_pinned(kBytes));
    std::fill_n(host, kWords, 8U);
    const CUstream stream = new_stream();
    Gate gate;
    gate.close(stream);
    CU(cuMemcpyHtoDAsync(p, host, kBytes, stream));
    std::fill_n(host, kWords, 9U);
    gate.open();
    CU(cuStreamSynchronize(stream));
    EXPECT_EQ(gpu.read(p, kWords)[5], 9U);
  }));
}

// CUDA Driver API reference, "API synchronization behavior", Memcpy: to pageable memory "the
// function will return only once the copy has completed".
TEST(Copy, ToPageableMemoryHasFinishedOnReturn) {
  EXPECT_CLEAN(in_child({{"SIMGPU_SCHEDULE", "late"}}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    const CUstream stream = new_stream();
    std::vector<uint32_t> host(kWords, 1);
    CU(cuMemsetD32Async(p, 6, kWords, stream));
    CU(cuMemcpyDtoHAsync(host.data(), p, kBytes, stream));
    EXPECT_EQ(host[kWords - 1], 6U);
  }));
}

// CUDA Driver API reference, "API synchronization behavior", Memcpy, asynchronous.
TEST(Copy, ToPinnedMemoryIsAsynchronous) {
  EXPECT_CLEAN(in_child({{"SIMGPU_SCHEDULE", "late"}}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    const CUstream stream = new_stream();
    auto* host = static_cast<uint32_t*>(allocate_pinned(kBytes));
    std::fill_n(host, kWords, 1U);
    CU(cuMemsetD32Async(p, 6, kWords, stream));
    CU(cuMemcpyDtoHAsync(host, p, kBytes, stream));
    EXPECT_EQ(host[kWords - 1], 1U);
    CU(cuStreamSynchronize(stream));
    EXPECT_EQ(host[kWords - 1], 6U);
  }));
}

// CUDA Driver API reference, "Memory Management", cuMemAllocPitch, cuMemcpy2D (a pitch smaller
// than the width: CUDA_ERROR_INVALID_VALUE), cuMemcpy3D.
TEST(Copy, RowsAndPlanes) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    CUdeviceptr p = 0;
    size_t pitch = 0;
    CU(cuMemAllocPitch(&p, &pitch, 40, 8, 4));
    EXPECT_EQ(pitch % 512, 0U);
    CU(cuMemsetD2D32(p, pitch, 0, 10, 8));
    uint32_t source[8][10];
    for (uint32_t y = 0; y < 8; ++y) {
      for (uint32_t x = 0; x < 10; ++x) source[y][x] = 100 * y + x;
    }
    CUDA_MEMCPY2D rows = {};
    rows.srcMemoryType = CU_MEMORYTYPE_HOST;
    rows.srcHost = source;
    rows.srcPitch = sizeof source[0];
    rows.srcXInBytes = 8;  // two columns
    rows.srcY = 1;
    rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    rows.dstDevice = p;
    rows.dstPitch = pitch;
    rows.dstY = 2;
    rows.WidthInBytes = 16;
    rows.Height = 3;
    CU(cuMemcpy2D(&rows));
    EXPECT_EQ(gpu.read(p + 2 * pitch, 4), (std::vector<uint32_t>{102, 103, 104, 105}));
    EXPECT_EQ(gpu.read(p + 4 * pitch, 5), (std::vector<uint32_t>{302, 303, 304, 305, 0}));
    EXPECT_EQ(gpu.read(p + 5 * pitch, 1)[0], 0U);
    rows.dstPitch = 8;
    EXPECT_EQ(cuMemcpy2D(&rows), CUDA_ERROR_INVALID_VALUE);
    rows.dstPitch = pitch;
    rows.Height = 7;  // one row too many
    EXPECT_EQ(cuMemcpy2D(&rows), CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr other = 0;
    CU(cuMemAlloc(&other, 4096));
    rows.dstDevice = std::min(p, other);
    rows.dstPitch = std::max(p, other) - rows.dstDevice;  // the second row in another allocation
    rows.dstY = 0;
    rows.Height = 2;
    EXPECT_EQ(cuMemcpy2D(&rows), CUDA_ERROR_INVALID_VALUE);
    // Back as a plane of a cube: a block of 2 planes, 2 rows.
    uint32_t cube[2][4][10];
    std::memset(cube, 0, sizeof cube);
    CUDA_MEMCPY3D planes = {};
    planes.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    planes.srcDevice = p;
    planes.srcPitch = pitch;
    planes.srcHeight = 2;
    planes.srcZ = 1;
    planes.dstMemoryType = CU_MEMORYTYPE_HOST;
    planes.dstHost = cube;
    planes.dstPitch = sizeof cube[0][0];
    planes.dstHeight = 4;
    planes.WidthInBytes = 16;
    planes.Height = 2;
    planes.Depth = 2;
    CU(cuMemcpy3D(&planes));
    EXPECT_EQ(cube[0][0][1], 103U);
    EXPECT_EQ(cube[1][0][3], 305U);
    EXPECT_EQ(cube[0][1][0], 202U);
  }));
}

// CUDA Driver API reference, "Memory Management", cuMemsetD2D8 and its like: address and pitch
// aligned to the element.
TEST(Copy, Fills) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    CU(cuMemsetD8(p, 0xab, kBytes));
    CU(cuMemsetD16(p + 4, 0x1234, 2));
    CU(cuMemsetD32(p + 8, 0xcafe1234, 1));
    EXPECT_EQ(gpu.read(p, 4),
              (std::vector<uint32_t>{0xabababab, 0x12341234, 0xcafe1234, 0xabababab}));
    EXPECT_EQ(cuMemsetD32(p + 2, 1, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemsetD16(p + 1, 1, 1), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemsetD2D8(p, 16, 0, 4, 2));
    EXPECT_EQ(gpu.read(p, 5), (std::vector<uint32_t>{0, 0x12341234, 0xcafe1234, 0xabababab, 0}));
  }));
}

// CUDA Driver API reference, "Memory Management", cuMemcpy: which memory an address means is
// seen from the address.
TEST(Copy, AnyToAny) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kBytes);
    std::vector<uint32_t> host(kWords, 11);
    std::vector<uint32_t> back(kWords);
    CU(cuMemcpy(p, reinterpret_cast<CUdeviceptr>(host.data()), kBytes));
    CU(cuMemcpy(reinterpret_cast<CUdeviceptr>(back.data()), p, kBytes));
    EXPECT_EQ(back, host);
    CUcontext context = nullptr;
    CU(cuCtxGetCurrent(&context));
    const CUdeviceptr q = allocate(kBytes);
    CU(cuMemcpyPeer(q, context, p, context, kBytes));
    EXPECT_EQ(gpu.read(q, 1)[0], 11U);
  }));
}

// A simulated device far larger than this machine: what nobody touches costs nothing.
TEST(Copy, UntouchedMemoryCostsNothing) {
  EXPECT_CLEAN(in_child({{"SIMGPU_MEMORY", "80GiB"}, {"SIMGPU_CHECK", "off"}}, [] {
    Gpu gpu;
    const size_t huge = size_t{30} << 30;
    const CUdeviceptr p = allocate(huge);
    const CUdeviceptr q = allocate(huge);
    CU(cuMemsetD8(p, 0, huge));
    CU(cuMemsetD32(p + huge / 2, 5, 4));
    CU(cuMemcpyDtoD(q, p, huge));
    EXPECT_EQ(gpu.read(q + huge / 2, 4)[3], 5U);
    EXPECT_EQ(gpu.read(q + huge - 16, 4)[3], 0U);
  }));
}

}  // namespace
}  // namespace simgpu::test
