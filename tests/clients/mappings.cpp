// SPDX-License-Identifier: Apache-2.0
// Our memory is made of virtual mappings, but the program has it from cuMemAlloc: calls for
// mappings and handles answer as they do for that, and change nothing. And memory that another
// device gets to know (a network card, say) stays where it is.

#include <chrono>
#include <cstdio>
#include <thread>

#include "tests/clients/client.h"

namespace clients {
namespace {

constexpr uint32_t kCrowd = 24;

void expect_crowd(Client& client, const std::vector<CUdeviceptr>& buffers, uint32_t first = 0) {
  for (uint32_t i = first; i < buffers.size(); ++i) client.expect(buffers[i], filled(1000 * i));
}

CUmemAllocationProp on_device() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  return properties;
}

// On buffers that are at home and on such that have left.
void mapping_calls(Client& client) {
  const auto unmap = ENTRY_OF(client, cuMemUnmap);
  const auto set_access = ENTRY_OF(client, cuMemSetAccess);
  const auto map = ENTRY_OF(client, cuMemMap);
  const auto address_free = ENTRY_OF(client, cuMemAddressFree);
  const auto retain = ENTRY_OF(client, cuMemRetainAllocationHandle);
  const auto create = ENTRY_OF(client, cuMemCreate);
  const auto release = ENTRY_OF(client, cuMemRelease);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  const CUmemAllocationProp properties = on_device();
  const CUmemAccessDesc read_only = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READ};
  for (const CUdeviceptr at : {buffers.front(), buffers[kCrowd / 2], buffers.back()}) {
    CUmemGenericAllocationHandle handle = 0;
    CHECK_CUDA(create(&handle, kBytes, &properties, 0));
    std::printf("retain %d\n", retain(&handle, reinterpret_cast<void*>(at)));
    std::printf("access %d\n", set_access(at, kBytes, &read_only, 1));
    std::printf("access of a part %d\n", set_access(at + kBytes / 2, kBytes / 2, &read_only, 1));
    std::printf("unmap %d\n", unmap(at, kBytes));
    std::printf("map %d\n", map(at, kBytes, 0, handle, 0));
    std::printf("free the address %d\n", address_free(at, kBytes));
    CHECK_CUDA(release(handle));
  }
  expect_crowd(client, buffers);
  client.disperse(buffers);
}

// A handle that was released may be given out again, for what we make.
void stale_handles(Client& client) {
  const auto create = ENTRY_OF(client, cuMemCreate);
  const auto release = ENTRY_OF(client, cuMemRelease);
  const auto describe = ENTRY_OF(client, cuMemGetAllocationPropertiesFromHandle);
  const auto reserve = ENTRY_OF(client, cuMemAddressReserve);
  const auto map = ENTRY_OF(client, cuMemMap);
  const auto share = ENTRY_OF(client, cuMemExportToShareableHandle);
  client.disperse(client.crowd(2));
  const CUmemAllocationProp properties = on_device();
  std::vector<CUmemGenericAllocationHandle> handles(4);
  for (CUmemGenericAllocationHandle& handle : handles)
    CHECK_CUDA(create(&handle, kBytes, &properties, 0));
  for (const CUmemGenericAllocationHandle handle : handles) CHECK_CUDA(release(handle));
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CUdeviceptr at = 0;
  CHECK_CUDA(reserve(&at, kBytes, 0, 0, 0));
  for (const CUmemGenericAllocationHandle handle : handles) {
    CUmemAllocationProp found{};
    int descriptor = -1;
    std::printf("describe %d\n", describe(&found, handle));
    std::printf("map %d\n", map(at, kBytes, 0, handle, 0));
    std::printf("export %d\n",
                share(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    std::printf("release %d\n", release(handle));
  }
  expect_crowd(client, buffers);
  client.disperse(buffers);
}

// Another device reads the first buffer whenever it likes, after `let_in` has told it where that
// lies.
template <typename LetIn>
void read_by_another_device(Client& client, LetIn&& let_in) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  let_in(buffers[0]);
  const std::vector<CUdeviceptr> more = client.crowd(kCrowd);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  std::this_thread::sleep_for(std::chrono::milliseconds{300});  // addresses change hands
  const CUdeviceptr sum = client.allocate();
  client.fill(sum, 7);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  mix_hidden(client, sum, buffers[0]);
  std::vector<uint32_t> wanted = filled(7);
  mix_on_host(wanted, filled(0));
  client.expect(sum, wanted);
  expect_crowd(client, buffers);
  expect_crowd(client, more);
  client.disperse(buffers);
  client.disperse(more);
}

// What drivers of network cards do before they look the pages up.
void synchronous_memory(Client& client) {
  const auto set = ENTRY_OF(client, cuPointerSetAttribute);
  const auto is_synchronous = [&](CUdeviceptr at) {
    int value = -1;
    CHECK_CUDA(client.cuda.cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at));
    return value;
  };
  read_by_another_device(client, [&](CUdeviceptr at) {
    int value = 1;
    CHECK(is_synchronous(at) == 0);
    CHECK_CUDA(set(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at));
    CHECK(is_synchronous(at) == 1);
    CHECK(is_synchronous(at + kBytes - 4) == 1);
    value = 0;
    CHECK_CUDA(set(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at + 4096));
    CHECK(is_synchronous(at) == 0);
  });
}

// Whether the driver makes a descriptor of such memory or not: the buffer stays.
void descriptor_of_a_range(Client& client) {
  const auto descriptor_of = ENTRY_OF(client, cuMemGetHandleForAddressRange);
  read_by_another_device(client, [&](CUdeviceptr at) {
    int descriptor = -1;
    CHECK_RESULT(descriptor_of(&descriptor, at, kBytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
                 CUDA_ERROR_INVALID_VALUE);
  });
}

void multicast_address(Client& client) {
  const auto bind = ENTRY_OF(client, cuMulticastBindAddr);
  read_by_another_device(client,
                         [&](CUdeviceptr at) { CHECK(bind(1, 0, at, kBytes, 0) != CUDA_SUCCESS); });
}

void access_of_an_address(Client& client) {
  const auto access = ENTRY_OF(client, cuMemGetAccess);
  read_by_another_device(client, [&](CUdeviceptr at) {
    unsigned long long flags = 0;
    const CUmemLocation location = on_device().location;
    CHECK_CUDA(access(&flags, &location, at));
    CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  });
}

// A tensor map is 128 bytes that a kernel is given; where they hold the address, nobody says. What
// was encoded is used when the buffer would have left long ago.
void tensor_map(Client& client) {
  read_by_another_device(client, [&](CUdeviceptr at) {
    alignas(128) CUtensorMap map{};
    const cuuint64_t dimensions[] = {256, 256};
    const cuuint64_t strides[] = {1024};
    const cuuint32_t box[] = {16, 16};
    const cuuint32_t steps[] = {1, 1};
    CHECK_CUDA(client.cuda.cuTensorMapEncodeTiled(
        &map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, reinterpret_cast<void*>(at), dimensions, strides,
        box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
        CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  });
}

}  // namespace

const std::vector<Scenario> kMappingScenarios = {
    {"mapping-calls", &mapping_calls},
    {"stale-handles", &stale_handles},
    {"synchronous-memory", &synchronous_memory},
    {"descriptor-of-a-range", &descriptor_of_a_range},
    {"multicast-address", &multicast_address},
    {"access-of-an-address", &access_of_an_address},
    {"tensor-map", &tensor_map},
};

}  // namespace clients
