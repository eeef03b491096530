// SPDX-License-Identifier: Apache-2.0
// Copies between two devices, none of which may touch the other's memory by kernels: the driver
// copies all the same.

#include <algorithm>

#include "tests/clients/several.h"

namespace clients {
namespace {

// Peer copies both ways, and the plain copy that finds out for itself.
void peer_copies(Client& client) {
  using Copy = CUresult (*)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t);
  using CopyAsync = CUresult (*)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream);
  const auto copy = reinterpret_cast<Copy>(client.cuda.other("cuMemcpyPeer"));
  const auto copy_async = reinterpret_cast<CopyAsync>(client.cuda.other("cuMemcpyPeerAsync"));
  CHECK(copy != nullptr && copy_async != nullptr);
  Client other = second_device(client);
  enter(client);
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> here = client.crowd(kCrowd);
  enter(other);
  const std::vector<CUdeviceptr> there = other.crowd(kCrowd);
  std::vector<std::vector<uint32_t>> wanted_here = crowd_on_host();
  std::vector<std::vector<uint32_t>> wanted_there = crowd_on_host();
  for (uint32_t i = 0; i < kCrowd; ++i) {
    const uint32_t from = (i + 7) % kCrowd;
    order(other, client);
    client.mix(here[i], here[from]);
    mix_on_host(wanted_here[i], wanted_here[from]);
    CHECK_CUDA(
        copy_async(there[from], other.context, here[i], client.context, kBytes, client.stream));
    wanted_there[from] = wanted_here[i];
    order(client, other);
    other.mix(there[i], there[from]);
    mix_on_host(wanted_there[i], wanted_there[from]);
    CHECK_CUDA(client.cuda.cuMemcpyAsync(here[from], there[i], kBytes, other.stream));
    wanted_here[from] = wanted_there[i];
  }
  CHECK_CUDA(other.cuda.cuCtxSynchronize());
  enter(client);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  CUDA_MEMCPY2D rectangle{};  // half of each row
  rectangle.srcMemoryType = rectangle.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rectangle.srcDevice = there[3];
  rectangle.dstDevice = here[4];
  rectangle.srcPitch = rectangle.dstPitch = 1024;
  rectangle.WidthInBytes = 512;
  rectangle.Height = kBytes / 1024;
  CHECK_CUDA(client.cuda.cuMemcpy2D(&rectangle));
  for (uint32_t i = 0; i < kWords; ++i) {
    if (i % 256 < 128) wanted_here[4][i] = wanted_there[3][i];
  }
  CHECK_CUDA(copy(here[0], client.context, there[kCrowd - 1], other.context, kBytes));
  wanted_here[0] = wanted_there[kCrowd - 1];
  expect_all(other, there, wanted_there);
  expect_all(client, here, wanted_here);
  client.disperse(here);
  enter(other);
  other.disperse(there);
}

// The same where the second device's memory is the driver's: it lies in a context of the program's
// own.
void copies_with_unmanaged(Client& client) {
  Client other = client;
  CHECK_CUDA(client.cuda.cuDeviceGet(&other.device, 1));
  CUctxCreateParams parameters{};
  CHECK_CUDA(client.cuda.cuCtxCreate(&other.context, &parameters, 0, other.device));
  other.stream = new_stream(other);
  std::vector<CUdeviceptr> there(kCrowd);
  for (CUdeviceptr& at : there) at = other.allocate();
  enter(client);
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> here = client.crowd(kCrowd);
  std::vector<std::vector<uint32_t>> wanted = crowd_on_host();
  for (uint32_t i = 0; i < kCrowd; ++i)
    CHECK_CUDA(client.cuda.cuMemcpyAsync(there[i], here[i], kBytes, client.stream));
  order(client, other);
  for (uint32_t i = 0; i < kCrowd; ++i) {  // and back, on a stream of the other device
    const uint32_t to = (i + 7) % kCrowd;
    CHECK_CUDA(client.cuda.cuMemcpyDtoDAsync(here[to], there[i], kBytes, other.stream));
    wanted[to] = filled(1000 * i);
  }
  order(other, client);
  CUDA_MEMCPY2D rectangle{};  // half of each row
  rectangle.srcMemoryType = rectangle.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rectangle.srcDevice = there[3];
  rectangle.dstDevice = here[4];
  rectangle.srcPitch = rectangle.dstPitch = 1024;
  rectangle.WidthInBytes = 512;
  rectangle.Height = kBytes / 1024;
  CHECK_CUDA(client.cuda.cuMemcpy2DAsync(&rectangle, client.stream));
  for (uint32_t i = 0; i < kWords; ++i) {
    if (i % 256 < 128) wanted[4][i] = filled(3000)[i];
  }
  expect_all(other, there, crowd_on_host());
  expect_all(client, here, wanted);
  client.disperse(here);
  CHECK_CUDA(client.cuda.cuCtxDestroy(other.context));
}

// Batches of copies to the other device, back, and on one device.
void batches_over_devices(Client& client) {
  using Batch = CUresult(CUdeviceptr*, CUdeviceptr*, size_t*, size_t, CUmemcpyAttributes*, size_t*,
                         size_t, size_t*, CUstream);
  const auto copy = entry<Batch>(client, "cuMemcpyBatchAsync");
  Client other = second_device(client);
  enter(client);
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> here = client.crowd(kCrowd);
  enter(other);
  const std::vector<CUdeviceptr> there = other.crowd(kCrowd);
  order(other, client);
  std::vector<std::vector<uint32_t>> wanted_here = crowd_on_host();
  std::vector<std::vector<uint32_t>> wanted_there = crowd_on_host();
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  size_t from_first = 0;
  size_t failed = 0;
  size_t sizes[3] = {kBytes, kBytes / 2, kBytes};
  for (uint32_t i = 0; i + 6 <= kCrowd; i += 6) {
    CUdeviceptr to[3] = {there[i], here[i + 1], here[i + 2]};
    CUdeviceptr from[3] = {here[i + 3], there[i + 4], here[i + 5]};
    CHECK_CUDA(copy(to, from, sizes, 3, &attributes, &from_first, 1, &failed, client.stream));
    wanted_there[i] = wanted_here[i + 3];
    const std::vector<uint32_t>& half = wanted_there[i + 4];
    std::copy_n(half.begin(), kWords / 2, wanted_here[i + 1].begin());
    wanted_here[i + 2] = wanted_here[i + 5];
  }
  size_t nothing[3] = {kBytes, 0, kBytes};
  CUdeviceptr to[3] = {there[0], here[1], here[2]};
  CUdeviceptr from[3] = {here[3], there[4], here[5]};
  CHECK_RESULT(copy(to, from, nothing, 3, &attributes, &from_first, 1, &failed, client.stream),
               CUDA_ERROR_INVALID_VALUE);
  CHECK_RESULT(copy(to, from, sizes, 3, &attributes, &from_first, 1, &failed, nullptr),
               CUDA_ERROR_INVALID_VALUE);
  order(client, other);
  expect_all(other, there, wanted_there);
  expect_all(client, here, wanted_here);
  client.disperse(here);
  enter(other);
  other.disperse(there);
}

// Captured copies to the other device and back are launched while all else leaves and comes back.
void captured_copies_over_devices(Client& client) {
  const Graphs graphs(client);
  Client other = second_device(client);
  const std::vector<CUdeviceptr> there = other.crowd(kCrowd);
  std::vector<std::vector<uint32_t>> wanted_there = crowd_on_host();
  CHECK_CUDA(other.cuda.cuCtxSynchronize());
  enter(client);
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> here = client.crowd(kCrowd);
  std::vector<std::vector<uint32_t>> wanted_here = crowd_on_host();
  CHECK_CUDA(graphs.begin(client.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK_CUDA(client.cuda.cuMemcpyAsync(there[0], here[0], kBytes, client.stream));
  CHECK_CUDA(client.cuda.cuMemcpyDtoDAsync(here[1], there[1], kBytes, client.stream));
  CUgraph graph = nullptr;
  CHECK_CUDA(graphs.end(client.stream, &graph));
  const CUgraphExec exec = graphs.instance(graph);
  CHECK_CUDA(graphs.destroy(graph));
  wanted_here[1] = wanted_there[1];
  for (uint32_t step = 0; step < 3; ++step) {
    CHECK_CUDA(graphs.launch(exec, client.stream));
    wanted_there[0] = wanted_here[0];
    for (uint32_t i = 0; i < kCrowd; ++i) {
      if (i == 1) continue;
      client.mix(here[i], here[(i + 2) % kCrowd]);
      mix_on_host(wanted_here[i], wanted_here[(i + 2) % kCrowd]);
    }
  }
  CHECK_CUDA(graphs.destroy_exec(exec));
  order(client, other);
  expect_all(other, there, wanted_there);
  expect_all(client, here, wanted_here);
  client.disperse(here);
  enter(other);
  other.disperse(there);
}

// A device's memory is copied to and from the host while the other one is current, and on its
// stream.
void host_copies_of_other_device(Client& client) {
  const std::vector<CUdeviceptr> here = client.crowd(kCrowd);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  Client other = second_device(client);
  const std::vector<CUdeviceptr> there = other.crowd(kCrowd);
  std::vector<uint32_t> got(kWords);
  CUDA_MEMCPY2D rectangle{};
  rectangle.srcMemoryType = CU_MEMORYTYPE_HOST;
  rectangle.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rectangle.srcPitch = rectangle.dstPitch = rectangle.WidthInBytes = 1024;
  rectangle.Height = kBytes / 1024;
  for (uint32_t i = 0; i < kCrowd; ++i) {
    if (i % 2 == 0) {
      CHECK_CUDA(other.cuda.cuMemcpyDtoH(got.data(), here[i], kBytes));
    } else {  // finds out for itself
      CHECK_CUDA(other.cuda.cuMemcpy(reinterpret_cast<CUdeviceptr>(got.data()), here[i], kBytes));
    }
    CHECK(got == filled(1000 * i));
    got = filled(7 + i);
    rectangle.srcHost = got.data();
    rectangle.dstDevice = here[i];
    if (i % 3 == 0) {
      CHECK_CUDA(other.cuda.cuMemcpy2DAsync(&rectangle, other.stream));
    } else {
      CHECK_CUDA(other.cuda.cuMemcpyHtoDAsync(here[i], got.data(), kBytes, other.stream));
    }
    CHECK_CUDA(other.cuda.cuStreamSynchronize(other.stream));
  }
  for (uint32_t i = 0; i < kCrowd; ++i) other.expect(there[i], filled(1000 * i));
  other.disperse(there);
  enter(client);
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(here[i], filled(7 + i));
  client.disperse(here);
}

}  // namespace

const std::vector<Scenario> kDeviceCopyScenarios = {
    {"peer-copies", &peer_copies},
    {"copies-with-unmanaged", &copies_with_unmanaged},
    {"batches-over-devices", &batches_over_devices},
    {"captured-copies-over-devices", &captured_copies_over_devices},
    {"host-copies-of-other-device", &host_copies_of_other_device},
};

}  // namespace clients
