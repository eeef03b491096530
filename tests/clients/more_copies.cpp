// SPDX-License-Identifier: Apache-2.0
// The less usual copies and fills, of buffers that have left.

#include "tests/clients/graphs.h"

namespace clients {
namespace {

constexpr uint32_t kCrowd = 24;
constexpr size_t kRow = 1024;
constexpr size_t kRows = kBytes / kRow;

void expect_rest(Client& client, const std::vector<CUdeviceptr>& buffers, uint32_t first) {
  for (uint32_t i = first; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  client.disperse(buffers);
}

// The form of CUDA 12.8, which also tells which copy failed.
void batch_copies(Client& client) {
  using Batch = CUresult(CUdeviceptr*, CUdeviceptr*, size_t*, size_t, CUmemcpyAttributes*, size_t*,
                         size_t, size_t*, CUstream);
  const auto copy = entry<Batch>(client, "cuMemcpyBatchAsync");
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CUdeviceptr to[] = {buffers[0], buffers[1], buffers[2] + kBytes / 2};
  CUdeviceptr from[] = {buffers[10], buffers[11], buffers[12]};
  size_t bytes[] = {kBytes, kBytes, kBytes / 2};
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  size_t first = 0;
  size_t failed = 0;
  CHECK_CUDA(copy(to, from, bytes, 3, &attributes, &first, 1, &failed, client.stream));
  client.expect(buffers[0], filled(10000));
  client.expect(buffers[1], filled(11000));
  std::vector<uint32_t> half = filled(2000);
  for (uint32_t i = 0; i < kWords / 2; ++i) half[kWords / 2 + i] = 12000 + i;
  client.expect(buffers[2], half);
  expect_rest(client, buffers, 3);
}

CUDA_MEMCPY3D box(CUdeviceptr to, CUdeviceptr from) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.dstDevice = to;
  copy.srcPitch = copy.dstPitch = kRow;
  copy.srcHeight = copy.dstHeight = 16;
  copy.WidthInBytes = kRow;
  copy.Height = 16;
  copy.Depth = kRows / 16;
  return copy;
}

void box_copies(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CUDA_MEMCPY3D copy = box(buffers[0], buffers[10]);
  CHECK_CUDA(ENTRY_OF(client, cuMemcpy3D)(&copy));
  client.expect(buffers[0], filled(10000));
  copy = box(buffers[1], buffers[11]);
  CHECK_CUDA(ENTRY_OF(client, cuMemcpy3DAsync)(&copy, client.stream));
  client.expect(buffers[1], filled(11000));
  const auto peer = [&](CUdeviceptr to, CUdeviceptr from) {
    CUDA_MEMCPY3D_PEER between{};
    between.srcMemoryType = between.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    between.srcDevice = from;
    between.dstDevice = to;
    between.srcContext = between.dstContext = client.context;
    between.WidthInBytes = kBytes;
    between.Height = between.Depth = 1;
    return between;
  };
  const CUDA_MEMCPY3D_PEER waiting = peer(buffers[2], buffers[12]);
  CHECK_CUDA(ENTRY_OF(client, cuMemcpy3DPeer)(&waiting));
  client.expect(buffers[2], filled(12000));
  const CUDA_MEMCPY3D_PEER queued = peer(buffers[3], buffers[13]);
  CHECK_CUDA(ENTRY_OF(client, cuMemcpy3DPeerAsync)(&queued, client.stream));
  client.expect(buffers[3], filled(13000));
  // Rows that the device's pitch does not suit.
  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.srcDevice = buffers[14];
  rows.dstDevice = buffers[4];
  rows.srcPitch = rows.dstPitch = kRow + 4;
  rows.WidthInBytes = 4;
  rows.Height = kRows - 1;
  CHECK_CUDA(ENTRY_OF(client, cuMemcpy2DUnaligned)(&rows));
  std::vector<uint32_t> diagonal = filled(4000);
  for (uint32_t row = 0; row + 1 < kRows; ++row) diagonal[row * 257] = 14000 + row * 257;
  client.expect(buffers[4], diagonal);
  expect_rest(client, buffers, 5);
}

void box_batch(Client& client) {
  using Batch = CUresult(size_t, CUDA_MEMCPY3D_BATCH_OP*, size_t*, unsigned long long, CUstream);
  const auto copy = entry<Batch>(client, "cuMemcpy3DBatchAsync");
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CUDA_MEMCPY3D_BATCH_OP copies[2] = {};
  for (uint32_t i = 0; i < 2; ++i) {
    copies[i].src.type = copies[i].dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    copies[i].src.op.ptr.ptr = buffers[10 + i];
    copies[i].dst.op.ptr.ptr = buffers[i];
    copies[i].extent = {kBytes, 1, 1};
    copies[i].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  }
  size_t failed = 0;
  CHECK_CUDA(copy(2, copies, &failed, 0, client.stream));
  client.expect(buffers[0], filled(10000));
  client.expect(buffers[1], filled(11000));
  expect_rest(client, buffers, 2);
}

void copies_both_ways(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CHECK_CUDA(ENTRY_OF(client, cuMemcpyDtoD)(buffers[0], buffers[10], kBytes));
  client.expect(buffers[0], filled(10000));
  CHECK_CUDA(ENTRY_OF(client, cuMemcpyPeer)(buffers[1], client.context, buffers[11], client.context,
                                            kBytes));
  client.expect(buffers[1], filled(11000));
  CHECK_CUDA(ENTRY_OF(client, cuMemcpyPeerAsync)(buffers[2], client.context, buffers[12],
                                                 client.context, kBytes, client.stream));
  client.expect(buffers[2], filled(12000));
  // Nothing at all.
  CHECK_CUDA(client.cuda.cuMemcpyDtoH(nullptr, buffers[3], 0));
  CHECK_CUDA(client.cuda.cuMemcpyDtoDAsync(0, 0, 0, client.stream));
  CHECK_CUDA(client.cuda.cuMemsetD8(buffers[3], 1, 0));
  expect_rest(client, buffers, 3);
}

void fills(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  const auto pattern = [](uint32_t byte) { return 0x01010101u * byte; };
  const auto two = [&](uint32_t byte) { return static_cast<unsigned short>(pattern(byte)); };
  CHECK_CUDA(ENTRY_OF(client, cuMemsetD8Async)(buffers[0], 1, kBytes, client.stream));
  CHECK_CUDA(ENTRY_OF(client, cuMemsetD16)(buffers[1], two(2), kBytes / 2));
  CHECK_CUDA(ENTRY_OF(client, cuMemsetD16Async)(buffers[2], two(3), kBytes / 2, client.stream));
  CHECK_CUDA(ENTRY_OF(client, cuMemsetD2D8)(buffers[3], kRow, 4, kRow, kRows));
  CHECK_CUDA(ENTRY_OF(client, cuMemsetD2D8Async)(buffers[4], kRow, 5, kRow, kRows, client.stream));
  CHECK_CUDA(ENTRY_OF(client, cuMemsetD2D16)(buffers[5], kRow, two(6), kRow / 2, kRows));
  CHECK_CUDA(ENTRY_OF(client, cuMemsetD2D16Async)(buffers[6], kRow, two(7), kRow / 2, kRows,
                                                  client.stream));
  CHECK_CUDA(ENTRY_OF(client, cuMemsetD2D32Async)(buffers[7], kRow, pattern(8), kRow / 4, kRows,
                                                  client.stream));
  for (uint32_t i = 0; i < 8; ++i)
    client.expect(buffers[i], std::vector<uint32_t>(kWords, pattern(i + 1)));
  CHECK_RESULT(ENTRY_OF(client, cuMemsetD16)(buffers[8] + 1, 1, 4), CUDA_ERROR_INVALID_VALUE);
  expect_rest(client, buffers, 8);
}

}  // namespace

const std::vector<Scenario> kMoreCopyScenarios = {
    {"batch-copies", &batch_copies},         {"box-copies", &box_copies}, {"box-batch", &box_batch},
    {"copies-both-ways", &copies_both_ways}, {"fills", &fills},
};

}  // namespace clients
