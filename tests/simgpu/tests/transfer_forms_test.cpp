// SPDX-License-Identifier: Apache-2.0
// Every form of copy and fill that the other tests do not meet, against what the bytes must be
// afterwards (CUDA Driver API reference, "Memory Management"), and small questions about memory.
#include <cstring>

#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {
namespace {

constexpr size_t kPitch = 64;
constexpr size_t kRows = 4;
constexpr size_t kAll = kPitch * kRows;

std::vector<uint8_t> bytes_at(CUdeviceptr p) {
  std::vector<uint8_t> bytes(kAll);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoH(bytes.data(), p, kAll), CUDA_SUCCESS);
  return bytes;
}

// Fills of `width` elements in `rows` rows with a value of which every byte counts.
struct Fill {
  const char* name;
  size_t element;
  size_t width;
  size_t rows;
  std::function<CUresult(CUdeviceptr, CUstream)> call;
};

TEST(Fills, WriteTheirElementsAndNoMore) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kAll);
    const std::vector<Fill> fills = {
        {"D16Async", 2, 5, 1,
         [](CUdeviceptr at, CUstream s) { return cuMemsetD16Async(at, 0x2211, 5, s); }},
        {"D2D8Async", 1, 7, 3,
         [](CUdeviceptr at, CUstream s) { return cuMemsetD2D8Async(at, kPitch, 0x11, 7, 3, s); }},
        {"D2D16", 2, 6, 2,
         [](CUdeviceptr at, CUstream) { return cuMemsetD2D16(at, kPitch, 0x2211, 6, 2); }},
        {"D2D16Async", 2, 6, 4,
         [](CUdeviceptr at, CUstream s) {
           return cuMemsetD2D16Async(at, kPitch, 0x2211, 6, 4, s);
         }},
        {"D2D32Async", 4, 9, 3,
         [](CUdeviceptr at, CUstream s) {
           return cuMemsetD2D32Async(at, kPitch, 0x44332211, 9, 3, s);
         }},
    };
    for (const Fill& fill : fills) {
      SCOPED_TRACE(fill.name);
      CU(cuMemsetD8(p, 0xee, kAll));
      CU(cuCtxSynchronize());
      const CUstream stream = new_stream();
      CU(fill.call(p + 8, stream));
      const std::vector<uint8_t> bytes = bytes_at(p);
      for (size_t i = 0; i < kAll; ++i) {
        const size_t row = i / kPitch;
        const size_t x = i % kPitch;
        const bool inside = row < fill.rows && x >= 8 && x < 8 + fill.width * fill.element;
        ASSERT_EQ(bytes[i], inside ? 0x11 * (1 + (x - 8) % fill.element) : 0xee) << i;
      }
      // "The address and pitch must be aligned to the element."
      const CUresult aligned = fill.element == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
      EXPECT_EQ(fill.call(p + 9, stream), aligned);
      CU(cuCtxSynchronize());
    }
  }));
}

// Three rows of ten bytes, from the second row and column of one plane to the third column of
// another; each form of copy in turn.
TEST(Copies, OfRowsInEveryForm) {
  EXPECT_CLEAN(in_child({{"SIMGPU_DEVICES", "2"}}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(kAll);
    const CUdeviceptr q = allocate(kAll);
    std::vector<uint8_t> source(kAll);
    for (size_t i = 0; i < kAll; ++i) source[i] = static_cast<uint8_t>(i);
    CU(cuMemcpyHtoD(p, source.data(), kAll));
    CU(cuCtxSynchronize());
    const CUstream stream = new_stream();
    CUDA_MEMCPY2D rows = {};
    rows.srcMemoryType = rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    rows.srcDevice = p;
    rows.dstDevice = q;
    rows.srcPitch = rows.dstPitch = kPitch;
    rows.srcXInBytes = 1;
    rows.srcY = 1;
    rows.dstXInBytes = 2;
    rows.WidthInBytes = 10;
    rows.Height = 3;
    CUDA_MEMCPY3D box = {};
    box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    box.srcDevice = p;
    box.dstDevice = q;
    box.srcPitch = box.dstPitch = kPitch;
    box.srcHeight = box.dstHeight = kRows;
    box.srcXInBytes = 1;
    box.srcY = 1;
    box.dstXInBytes = 2;
    box.WidthInBytes = 10;
    box.Height = 3;
    box.Depth = 1;
    CUDA_MEMCPY3D_PEER peer = {};
    peer.srcMemoryType = peer.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    peer.srcDevice = p;
    peer.dstDevice = q;
    peer.srcContext = peer.dstContext = gpu.context;
    peer.srcPitch = peer.dstPitch = kPitch;
    peer.srcHeight = peer.dstHeight = kRows;
    peer.srcXInBytes = 1;
    peer.srcY = 1;
    peer.dstXInBytes = 2;
    peer.WidthInBytes = 10;
    peer.Height = 3;
    peer.Depth = 1;
    const std::pair<const char*, std::function<CUresult()>> forms[] = {
        {"2DUnaligned", [&] { return cuMemcpy2DUnaligned(&rows); }},
        {"2DAsync", [&] { return cuMemcpy2DAsync(&rows, stream); }},
        {"3DAsync", [&] { return cuMemcpy3DAsync(&box, stream); }},
        {"3DPeerAsync", [&] { return cuMemcpy3DPeerAsync(&peer, stream); }},
    };
    for (const auto& [name, copy] : forms) {
      SCOPED_TRACE(name);
      CU(cuMemsetD8(q, 0xee, kAll));
      CU(cuCtxSynchronize());
      CU(copy());
      const std::vector<uint8_t> bytes = bytes_at(q);
      for (size_t i = 0; i < kAll; ++i) {
        const size_t row = i / kPitch;
        const size_t x = i % kPitch;
        const bool inside = row < 3 && x >= 2 && x < 12;
        ASSERT_EQ(bytes[i], inside ? source[i + kPitch - 1] : 0xee) << i;
      }
    }
    rows.WidthInBytes = kPitch + 1;
    EXPECT_EQ(cuMemcpy2DAsync(&rows, stream), CUDA_ERROR_INVALID_VALUE);
  }));
}

// cuMemGetAllocationPropertiesFromHandle.
TEST(MemoryQuestions, AHandleKnowsItsProperties) {
  EXPECT_CLEAN(in_child({{"SIMGPU_DEVICES", "2"}}, [] {
    Gpu gpu;
    CUmemAllocationProp properties = device_properties(1);
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle handle = 0;
    CU(cuMemCreate(&handle, 2 << 20, &properties, 0));
    CUmemAllocationProp asked = {};
    CU(cuMemGetAllocationPropertiesFromHandle(&asked, handle));
    EXPECT_EQ(asked.location.id, 1);
    EXPECT_EQ(asked.requestedHandleTypes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CU(cuMemRelease(handle));
    EXPECT_EQ(cuMemGetAllocationPropertiesFromHandle(&asked, handle), CUDA_ERROR_INVALID_VALUE);
  }));
}

// cuMemGetDefaultMemPool, cuMemGetMemPool, cuMemSetMemPool (CUDA 13), cuMemPoolSetAccess,
// cuMemPoolGetAccess: "the device a pool resides on always has access".
TEST(MemoryQuestions, PoolsByLocation) {
  EXPECT_CLEAN(in_child({{"SIMGPU_DEVICES", "2"}}, [] {
    Gpu gpu;
    CUmemLocation first = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemLocation second = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
    CUmemoryPool preset = nullptr;
    CUmemoryPool found = nullptr;
    CU(cuMemGetDefaultMemPool(&preset, &first, CU_MEM_ALLOCATION_TYPE_PINNED));
    CU(cuDeviceGetDefaultMemPool(&found, 0));
    EXPECT_EQ(preset, found);
    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = first;
    CUmemoryPool pool = nullptr;
    CU(cuMemPoolCreate(&pool, &properties));
    CU(cuMemSetMemPool(&first, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
    CU(cuMemGetMemPool(&found, &first, CU_MEM_ALLOCATION_TYPE_PINNED));
    EXPECT_EQ(found, pool);
    CU(cuDeviceGetMemPool(&found, 0));
    EXPECT_EQ(found, pool);
    EXPECT_EQ(cuMemSetMemPool(&second, CU_MEM_ALLOCATION_TYPE_PINNED, pool),
              CUDA_ERROR_INVALID_VALUE);  // a pool of another device

    CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CU(cuMemPoolGetAccess(&access, pool, &first));
    EXPECT_EQ(access, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CU(cuMemPoolGetAccess(&access, pool, &second));
    EXPECT_EQ(access, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    CUmemAccessDesc desc = {second, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CU(cuMemPoolSetAccess(pool, &desc, 1));
    CU(cuMemPoolGetAccess(&access, pool, &second));
    EXPECT_EQ(access, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    desc = {first, CU_MEM_ACCESS_FLAGS_PROT_NONE};
    EXPECT_EQ(cuMemPoolSetAccess(pool, &desc, 1), CUDA_ERROR_INVALID_VALUE);
  }));
}

// cuMemRangeGetAttribute and cuStreamAttachMemAsync are for managed memory alone.
TEST(MemoryQuestions, ManagedRanges) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    CUdeviceptr managed = 0;
    CU(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
    int32_t value = 9;
    CU(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed, 4096));
    EXPECT_EQ(value, 0);  // no advice is kept
    const CUdeviceptr plain = allocate(4096);
    EXPECT_EQ(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, plain, 4096),
              CUDA_ERROR_INVALID_VALUE);
    const CUstream stream = new_stream();
    CU(cuStreamAttachMemAsync(stream, managed, 0, CU_MEM_ATTACH_SINGLE));
    CU(cuStreamAttachMemAsync(stream, managed, 4096, CU_MEM_ATTACH_GLOBAL));
    EXPECT_EQ(cuStreamAttachMemAsync(stream, managed, 2048, CU_MEM_ATTACH_GLOBAL),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuStreamAttachMemAsync(stream, plain, 0, CU_MEM_ATTACH_GLOBAL),
              CUDA_ERROR_INVALID_VALUE);
  }));
}

// cuTensorMapEncodeIm2col and its wide form: what is checked, one wrong argument at a time.
TEST(TensorMaps, OfImages) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(1 << 20);
    struct Image {
      CUtensorMap map = {};
      cuuint32_t rank = 4;
      cuuint64_t dimensions[4] = {32, 16, 16, 2};
      cuuint64_t strides[3] = {128, 2048, 32768};
      int lower[2] = {-1, -1};
      int upper[2] = {-1, -1};
      cuuint32_t channels = 16;
      cuuint32_t pixels = 64;
      cuuint32_t steps[4] = {1, 1, 1, 1};
      CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
      CUresult encode(CUdeviceptr at) {
        return cuTensorMapEncodeIm2col(
            &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank, reinterpret_cast<void*>(at), dimensions,
            strides, lower, upper, channels, pixels, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
            CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
      }
      CUresult encode_wide(CUdeviceptr at) {
        return cuTensorMapEncodeIm2colWide(
            &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank, reinterpret_cast<void*>(at), dimensions,
            strides, lower[0], upper[0], channels, pixels, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
            CU_TENSOR_MAP_IM2COL_WIDE_MODE_W, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
      }
    };
    Image right;
    CU(right.encode(p));
    const CUtensorMap first = right.map;
    CU(right.encode(p + 16));
    EXPECT_NE(std::memcmp(&first, &right.map, sizeof first), 0);  // the address is in it
    CU(cuTensorMapReplaceAddress(&right.map, reinterpret_cast<void*>(p)));
    EXPECT_EQ(std::memcmp(&first, &right.map, sizeof first), 0);
    CU(right.encode_wide(p));
    const std::pair<const char*, void (*)(Image&)> wrong[] = {
        {"rank", [](Image& image) { image.rank = 2; }},
        {"dimension", [](Image& image) { image.dimensions[1] = 0; }},
        {"stride", [](Image& image) { image.strides[1] = 2056; }},
        {"channels", [](Image& image) { image.channels = 257; }},
        {"pixels", [](Image& image) { image.pixels = 1025; }},
        {"step", [](Image& image) { image.steps[2] = 9; }},
    };
    for (const auto& [what, spoil] : wrong) {
      SCOPED_TRACE(what);
      Image image;
      spoil(image);
      EXPECT_EQ(image.encode(p), CUDA_ERROR_INVALID_VALUE);
      EXPECT_EQ(image.encode_wide(p), CUDA_ERROR_INVALID_VALUE);
    }
    EXPECT_EQ(right.encode(p + 4), CUDA_ERROR_INVALID_VALUE);
    // The wide form alone: corners of 16 bits, and the swizzles whose span holds the channels.
    Image image;
    image.lower[0] = -32769;
    EXPECT_EQ(image.encode_wide(p), CUDA_ERROR_INVALID_VALUE);
    image.lower[0] = 0;
    image.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
    CU(image.encode(p));
    EXPECT_EQ(image.encode_wide(p), CUDA_ERROR_INVALID_VALUE);
    image.swizzle = CU_TENSOR_MAP_SWIZZLE_64B;
    CU(image.encode_wide(p));
    image.channels = 17;
    EXPECT_EQ(image.encode_wide(p), CUDA_ERROR_INVALID_VALUE);
  }));
}

}  // namespace
}  // namespace simgpu::test
