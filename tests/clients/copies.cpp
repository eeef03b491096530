// SPDX-License-Identifier: Apache-2.0
// Copies and fills of buffers that have left, and copies that reach too far.

#include "tests/clients/client.h"

namespace clients {
namespace {

constexpr uint32_t kCrowd = 20;
constexpr uint32_t kWidth = 256;  // words of a row
constexpr uint32_t kRows = kWords / kWidth;

CUDA_MEMCPY2D rectangle(size_t width_words, size_t rows) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcPitch = copy.dstPitch = kWidth * sizeof(uint32_t);
  copy.WidthInBytes = width_words * sizeof(uint32_t);
  copy.Height = rows;
  return copy;
}

void plain(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  std::vector<uint32_t> values = filled(77);
  CHECK_CUDA(client.cuda.cuMemcpyHtoD(buffers[0], values.data(), kBytes));
  CHECK_CUDA(client.cuda.cuMemcpyHtoDAsync(buffers[1] + kBytes / 2, values.data(), kBytes / 2,
                                           client.stream));
  CHECK_CUDA(client.cuda.cuMemcpyDtoDAsync(buffers[2], buffers[3], kBytes, client.stream));
  CHECK_CUDA(client.cuda.cuMemcpyAsync(buffers[4], buffers[5], kBytes, client.stream));
  CHECK_CUDA(client.cuda.cuMemsetD32(buffers[6], 66, kWords));
  CHECK_CUDA(client.cuda.cuMemsetD32Async(buffers[7], 67, kWords / 2, client.stream));
  CHECK_CUDA(client.cuda.cuMemsetD2D32(buffers[8] + 4, kWidth * 4, 68, 2, kRows));
  client.expect(buffers[0], values);
  std::vector<uint32_t> half = filled(1000);
  for (uint32_t i = 0; i < kWords / 2; ++i) half[kWords / 2 + i] = 77 + i;
  client.expect(buffers[1], half);
  client.expect(buffers[2], filled(3000));
  client.expect(buffers[3], filled(3000));
  client.expect(buffers[4], filled(5000));
  client.expect(buffers[6], std::vector<uint32_t>(kWords, 66));
  std::vector<uint32_t> partly = filled(7000);
  for (uint32_t i = 0; i < kWords / 2; ++i) partly[i] = 67;
  client.expect(buffers[7], partly);
  std::vector<uint32_t> columns = filled(8000);
  for (size_t row = 0; row < kRows; ++row)
    columns[row * kWidth + 1] = columns[row * kWidth + 2] = 68;
  client.expect(buffers[8], columns);
  client.disperse(buffers);
}

void two_dimensional(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  // Device to device: 10 columns from column 3, row 2, of one buffer to column 100, row 5, of
  // another.
  CUDA_MEMCPY2D copy = rectangle(10, 50);
  copy.srcDevice = buffers[0];
  copy.srcXInBytes = 3 * sizeof(uint32_t);
  copy.srcY = 2;
  copy.dstDevice = buffers[1];
  copy.dstXInBytes = 100 * sizeof(uint32_t);
  copy.dstY = 5;
  CHECK_CUDA(client.cuda.cuMemcpy2DAsync(&copy, client.stream));
  std::vector<uint32_t> wanted = filled(1000);
  for (uint32_t row = 0; row < 50; ++row) {
    for (uint32_t i = 0; i < 10; ++i)
      wanted[(row + 5) * kWidth + 100 + i] = (row + 2) * kWidth + 3 + i;
  }
  client.expect(buffers[1], wanted);
  // From the host and back.
  std::vector<uint32_t> host = filled(5, 20 * 8);
  copy = rectangle(8, 20);
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host.data();
  copy.srcPitch = 8 * sizeof(uint32_t);
  copy.dstDevice = buffers[2];
  CHECK_CUDA(client.cuda.cuMemcpy2D(&copy));
  std::vector<uint32_t> back(20 * 8);
  copy = rectangle(8, 20);
  copy.srcDevice = buffers[2];
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = back.data();
  copy.dstPitch = 8 * sizeof(uint32_t);
  CHECK_CUDA(client.cuda.cuMemcpy2D(&copy));
  CHECK(back == host);
  // The last row must still be inside.
  copy = rectangle(kWidth, kRows);
  copy.srcDevice = buffers[3];
  copy.dstDevice = buffers[4] + 4;
  CHECK_RESULT(client.cuda.cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
  client.expect(buffers[4], filled(4000));
  client.disperse(buffers);
}

// Two buffers are never one: the driver refuses such a copy, whichever end it is.
void spanning(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  std::vector<uint32_t> host(2 * kWords);
  const auto too_far = buffers[0] + kBytes - 4096;
  CHECK_RESULT(client.cuda.cuMemcpyDtoH(host.data(), too_far, 8192), CUDA_ERROR_INVALID_VALUE);
  CHECK_RESULT(client.cuda.cuMemcpyHtoD(too_far, host.data(), 8192), CUDA_ERROR_INVALID_VALUE);
  CHECK_RESULT(client.cuda.cuMemcpyDtoDAsync(buffers[1], too_far, 8192, client.stream),
               CUDA_ERROR_INVALID_VALUE);
  CHECK_RESULT(client.cuda.cuMemcpyDtoDAsync(too_far, buffers[1], 8192, client.stream),
               CUDA_ERROR_INVALID_VALUE);
  CHECK_RESULT(client.cuda.cuMemsetD8(too_far, 1, 8192), CUDA_ERROR_INVALID_VALUE);
  CHECK_RESULT(client.cuda.cuMemcpyDtoH(host.data(), buffers[2], 2 * kBytes),
               CUDA_ERROR_INVALID_VALUE);
  // Whatever stands behind the end of a buffer, be it the rest of its last page or another buffer.
  for (const size_t bytes : {kBytes - 10000, size_t{5000}}) {
    const CUdeviceptr at = client.allocate(bytes);
    const CUdeviceptr next = client.allocate(bytes);
    CHECK_RESULT(client.cuda.cuMemcpyHtoD(at, host.data(), bytes + 512), CUDA_ERROR_INVALID_VALUE);
    CHECK_RESULT(client.cuda.cuMemsetD8(at + bytes - 8, 1, 1000), CUDA_ERROR_INVALID_VALUE);
    CHECK_CUDA(client.cuda.cuMemsetD8(at, 1, bytes));
    client.free(at);
    client.free(next);
  }
  CHECK_CUDA(client.cuda.cuMemcpyDtoH(host.data(), too_far, 4096));
  for (size_t i = 0; i < buffers.size(); ++i)
    client.expect(buffers[i], filled(static_cast<uint32_t>(1000 * i)));
  client.disperse(buffers);
}

}  // namespace

const std::vector<Scenario> kCopyScenarios = {
    {"copies", &plain},
    {"copies-2d", &two_dimensional},
    {"spanning-copy", &spanning},
};

}  // namespace clients
