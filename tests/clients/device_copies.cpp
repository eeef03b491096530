// SPDX-License-Identifier: Apache-2.0
// Copies between two devices, none of which may touch the other's memory by kernels: the driver
// copies all the same.

#include <algorithm>
#include <iterator>

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

// The same where the second device has only what the program has mapped by hand, for it alone; and
// what is no device's memory is refused as ever.
void copies_with_mapped(Client& client) {
  constexpr uint32_t kMapped = 8;
  Client other = second_device(client);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = 1;
  CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr there = 0;
  CUmemGenericAllocationHandle handle = 0;
  CHECK_CUDA(ENTRY_OF(client, cuMemAddressReserve)(&there, kMapped * kBytes, 0, 0, 0));
  CHECK_CUDA(ENTRY_OF(client, cuMemCreate)(&handle, kMapped * kBytes, &properties, 0));
  CHECK_CUDA(ENTRY_OF(client, cuMemMap)(there, kMapped * kBytes, 0, handle, 0));
  CHECK_CUDA(ENTRY_OF(client, cuMemSetAccess)(there, kMapped * kBytes, &access, 1));
  enter(client);
  client.stream = new_stream(client);
  const std::vector<CUdeviceptr> here = client.crowd(kCrowd);
  std::vector<std::vector<uint32_t>> wanted = crowd_on_host();
  order(client, other);
  for (uint32_t i = 0; i < kMapped; ++i) {
    const CUdeviceptr at = there + i * kBytes;
    CHECK_CUDA(client.cuda.cuMemcpyDtoDAsync(at, here[i], kBytes, other.stream));
    CHECK_CUDA(client.cuda.cuMemcpyAsync(here[kMapped + i], at, kBytes, other.stream));
    wanted[kMapped + i] = wanted[i];
  }
  std::vector<uint32_t> on_host(kWords);
  CHECK_RESULT(client.cuda.cuMemcpyDtoDAsync(here[0], reinterpret_cast<CUdeviceptr>(on_host.data()),
                                             kBytes, other.stream),
               CUDA_ERROR_INVALID_VALUE);
  order(other, client);
  expect_all(client, here, wanted);
  client.disperse(here);
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

// What is copied from and to the first device's memory while the second is current, and on its
// stream: by each way to and from the host, within it, to managed memory, and tables of pointers.
void copies_of_other_device(Client& client) {
  const std::vector<CUdeviceptr> here = client.crowd(kCrowd);
  std::vector<std::vector<uint32_t>> wanted = crowd_on_host();
  const CUdeviceptr table = client.allocate(4096);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  Client other = second_device(client);
  const std::vector<CUdeviceptr> there = other.crowd(kCrowd);
  const auto allocate_managed = ENTRY_OF(client, cuMemAllocManaged);
  CUdeviceptr managed = 0;
  CHECK_CUDA(allocate_managed(&managed, kBytes, CU_MEM_ATTACH_GLOBAL));
  std::vector<uint32_t> on_host(kWords);
  const auto host = reinterpret_cast<CUdeviceptr>(on_host.data());
  CUDA_MEMCPY2D rectangle{};
  rectangle.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rectangle.srcPitch = rectangle.dstPitch = rectangle.WidthInBytes = 1024;
  rectangle.Height = kBytes / 1024;
  for (uint32_t i = 0; i < kCrowd; ++i) {
    std::fill(on_host.begin(), on_host.end(), 0);
    switch (i % 3) {
      case 0:
        CHECK_CUDA(other.cuda.cuMemcpyDtoH(on_host.data(), here[i], kBytes));
        break;
      case 1:
        CHECK_CUDA(other.cuda.cuMemcpy(host, here[i], kBytes));
        break;
      default:
        CHECK_CUDA(other.cuda.cuMemcpyDtoHAsync(on_host.data(), here[i], kBytes, other.stream));
        CHECK_CUDA(other.cuda.cuStreamSynchronize(other.stream));
    }
    CHECK(on_host == wanted[i]);
    on_host = wanted[i] = filled(7 + i);
    switch (i % 4) {
      case 0:
        CHECK_CUDA(other.cuda.cuMemcpyHtoD(here[i], on_host.data(), kBytes));
        break;
      case 1:
        CHECK_CUDA(other.cuda.cuMemcpyAsync(here[i], reinterpret_cast<CUdeviceptr>(on_host.data()),
                                            kBytes, other.stream));
        break;
      case 2:
        rectangle.srcMemoryType = CU_MEMORYTYPE_HOST;
        rectangle.srcHost = on_host.data();
        rectangle.dstDevice = here[i];
        CHECK_CUDA(other.cuda.cuMemcpy2DAsync(&rectangle, other.stream));
        break;
      default:
        std::copy(on_host.begin(), on_host.end(), reinterpret_cast<uint32_t*>(managed));
        CHECK_CUDA(other.cuda.cuMemcpy(here[i], managed, kBytes));
    }
    CHECK_CUDA(other.cuda.cuStreamSynchronize(other.stream));
  }
  for (uint32_t i = 0; i + 1 < kCrowd; i += 2) {
    if (i % 4 == 0) {
      CHECK_CUDA(other.cuda.cuMemcpyDtoDAsync(here[i], here[i + 1], kBytes, other.stream));
    } else {
      rectangle.srcMemoryType = CU_MEMORYTYPE_DEVICE;
      rectangle.srcDevice = here[i + 1];
      rectangle.dstDevice = here[i];
      CHECK_CUDA(other.cuda.cuMemcpy2DAsync(&rectangle, other.stream));
    }
    wanted[i] = wanted[i + 1];
  }
  CHECK_CUDA(other.cuda.cuStreamSynchronize(other.stream));
  CUdeviceptr entries[] = {here[2], here[5], 0, here[8]};
  CUDA_MEMCPY2D row{};
  row.srcMemoryType = CU_MEMORYTYPE_HOST;
  row.srcHost = entries;
  row.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  row.dstDevice = table;
  row.WidthInBytes = row.srcPitch = row.dstPitch = sizeof(entries);
  row.Height = 1;
  CHECK_CUDA(other.cuda.cuMemcpy2D(&row));
  for (uint32_t i = 0; i < kCrowd; ++i) other.expect(there[i], filled(1000 * i));
  other.disperse(there);
  enter(client);
  const std::vector<CUdeviceptr> more = client.crowd(kCrowd);  // what the table names has left
  CUdeviceptr sum = client.allocate();
  client.fill(sum, 5);
  std::vector<uint32_t> mixed = filled(5);
  uint32_t count = std::size(entries);
  uint32_t words = kWords;
  CUdeviceptr at = table;
  client.launch(client.function("mix_table"), {&sum, &at, &count, &words}, {8, 8, 4, 4});
  for (const uint32_t i : {2u, 5u, 8u}) mix_on_host(mixed, wanted[i]);
  client.expect(sum, mixed);
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(here[i], wanted[i]);
  client.disperse(more);
  client.disperse(here);
}

}  // namespace

const std::vector<Scenario> kDeviceCopyScenarios = {
    {"peer-copies", &peer_copies},
    {"copies-with-unmanaged", &copies_with_unmanaged},
    {"copies-with-mapped", &copies_with_mapped},
    {"captured-copies-over-devices", &captured_copies_over_devices},
    {"copies-of-other-device", &copies_of_other_device},
};

}  // namespace clients
