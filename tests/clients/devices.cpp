// SPDX-License-Identifier: Apache-2.0
// Two devices in one process, each under a limit that its buffers exceed: one thread that goes from
// one to the other or a thread for each, and operations that use memory of both.

#include <thread>

#include "tests/clients/several.h"

namespace clients {
namespace {

// One thread alternates; no operation uses memory of both.
void devices_in_turn(Client& client) {
  Client other = second_device(client);
  std::vector<CUdeviceptr> buffers[2];
  std::vector<std::vector<uint32_t>> wanted[2] = {crowd_on_host(), crowd_on_host()};
  Client* const clients[] = {&client, &other};
  for (int at = 0; at < 2; ++at) {
    enter(*clients[at]);
    buffers[at] = clients[at]->crowd(kCrowd);
  }
  for (uint32_t turn = 0; turn < 3; ++turn) {
    for (uint32_t i = 0; i < kCrowd; ++i) {
      for (int at = 0; at < 2; ++at) {
        const uint32_t from = (i + 5 + static_cast<uint32_t>(at)) % kCrowd;
        enter(*clients[at]);
        clients[at]->mix(buffers[at][i], buffers[at][from]);
        mix_on_host(wanted[at][i], wanted[at][from]);
      }
    }
  }
  for (int at = 0; at < 2; ++at) {
    expect_all(*clients[at], buffers[at], wanted[at]);
    clients[at]->disperse(buffers[at]);
  }
}

// What training does, on one device.
void train(Client client, uint32_t seed) {
  enter(client);
  client.stream = new_stream(client);
  for (int step = 0; step < 6; ++step) {
    const CUdeviceptr sum = client.allocate();
    client.fill(sum, seed);
    std::vector<uint32_t> wanted = filled(seed);
    const std::vector<CUdeviceptr> stash = client.crowd(kCrowd);
    for (uint32_t i = kCrowd; i-- > 0;) {
      client.mix(sum, stash[i]);
      mix_on_host(wanted, filled(1000 * i));
    }
    client.expect(sum, wanted);
    client.disperse(stash);
    client.free(sum);
  }
}

// A thread for each device; they know nothing of each other.
void devices_in_threads(Client& client) {
  Client other = second_device(client);
  std::thread beside([&other] { train(other, 100); });
  train(client, 200);
  beside.join();
}

// One thread that goes from one device to the other. Each one's kernels read and write what the
// other has evicted.
void two_devices(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  std::vector<std::vector<uint32_t>> wanted = crowd_on_host();
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  Client other = client;
  other.start(1);
  CHECK_CUDA(let_see(other, client));
  CHECK_CUDA(let_see(client, other));
  enter(other);
  other.stream = new_stream(other);
  const std::vector<CUdeviceptr> theirs = other.crowd(kCrowd);
  std::vector<std::vector<uint32_t>> wanted_there = crowd_on_host();
  enter(client);
  client.stream = new_stream(client);
  order(other, client);
  take_turns(client, other, buffers, wanted);
  for (uint32_t i = 0; i < kCrowd; ++i) {
    enter(other);
    other.mix(theirs[i], buffers[i]);
    mix_on_host(wanted_there[i], wanted[i]);
    order(other, client);
    client.mix(buffers[i], theirs[i]);
    mix_on_host(wanted[i], wanted_there[i]);
    order(client, other);
  }
  expect_all(other, theirs, wanted_there);
  expect_all(client, buffers, wanted);
  enter(other);
  other.disperse(theirs);
  CHECK_CUDA(client.cuda.cuDevicePrimaryCtxReset(other.device));
  take_turns(client, client, buffers, wanted);
  expect_all(client, buffers, wanted);
  client.disperse(buffers);
}

// A thread for each device, at the same time.
void two_devices_two_threads(Client& client) {
  const std::vector<CUdeviceptr> shared = client.crowd(kCrowd / 2);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  Client other = client;
  other.start(1);
  CHECK_CUDA(let_see(other, client));
  const auto read_all = [&shared](Client& own, uint32_t seed) {
    enter(own);
    own.stream = new_stream(own);
    for (int step = 0; step < 6; ++step) {
      const CUdeviceptr sum = own.allocate();
      own.fill(sum, seed);
      std::vector<uint32_t> wanted = filled(seed);
      const std::vector<CUdeviceptr> stash = own.crowd(kCrowd / 2);
      for (uint32_t i = kCrowd / 2; i-- > 0;) {
        own.mix(sum, shared[i]);
        mix_on_host(wanted, filled(1000 * i));
        own.mix(sum, stash[i]);
        mix_on_host(wanted, filled(1000 * i));
      }
      own.expect(sum, wanted);
      own.disperse(stash);
      own.free(sum);
    }
  };
  std::thread beside([&] { read_all(other, 100); });
  Client own = client;
  read_all(own, 200);
  beside.join();
  enter(client);
  for (uint32_t i = 0; i < kCrowd / 2; ++i) client.expect(shared[i], filled(1000 * i));
  client.disperse(shared);
}

// One device is reset, with buffers away; the other goes on, and so does the first with new memory.
void device_reset(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  std::vector<std::vector<uint32_t>> wanted = crowd_on_host();
  for (int round = 0; round < 3; ++round) {
    Client other = second_device(client);
    const std::vector<CUdeviceptr> theirs = other.crowd(kCrowd);
    take_turns(client, client, buffers, wanted);
    enter(other);
    for (uint32_t i = 0; i < kCrowd; ++i) other.mix(theirs[i], theirs[(i + 3) % kCrowd]);
    CHECK_CUDA(client.cuda.cuCtxSynchronize());
    CHECK_CUDA(client.cuda.cuDevicePrimaryCtxReset(other.device));
    take_turns(client, client, buffers, wanted);
  }
  expect_all(client, buffers, wanted);
  // And now the one that was first.
  Client other = second_device(client);
  const std::vector<CUdeviceptr> theirs = other.crowd(kCrowd);
  std::vector<std::vector<uint32_t>> wanted_there = crowd_on_host();
  enter(client);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  CHECK_CUDA(client.cuda.cuDevicePrimaryCtxReset(client.device));
  take_turns(other, other, theirs, wanted_there);
  client.start();
  const std::vector<CUdeviceptr> again = client.crowd(kCrowd);
  take_turns(other, other, theirs, wanted_there);
  expect_all(other, theirs, wanted_there);
  enter(client);
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(again[i], filled(1000 * i));
  client.disperse(again);
  enter(other);
  other.disperse(theirs);
}

// Freed while the other device is current, at once and in the order of the other's stream.
void freed_from_other_device(Client& client) {
  Client other = second_device(client);
  CHECK_CUDA(let_see(other, client));
  enter(client);
  client.stream = new_stream(client);
  for (uint32_t step = 0; step < 6; ++step) {
    enter(client);
    const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
    enter(other);
    const CUdeviceptr sum = other.allocate();
    other.fill(sum, step);
    std::vector<uint32_t> wanted = filled(step);
    order(client, other);
    for (uint32_t i = 0; i < kCrowd; ++i) {
      other.mix(sum, buffers[i]);
      mix_on_host(wanted, filled(1000 * i));
      if (i % 2 == 0) {
        CHECK_CUDA(other.cuda.cuMemFree(buffers[i]));
      } else {
        CHECK_CUDA(other.cuda.cuMemFreeAsync(buffers[i], other.stream));
      }
    }
    other.expect(sum, wanted);
    enter(client);
    other.free(sum);
  }
}

// The stream's device serves, whichever is current; and each device's pool tells of its own.
void stream_ordered_on_devices(Client& client) {
  Client other = second_device(client);
  enter(client);
  client.stream = new_stream(client);
  CHECK_CUDA(let_see(client, other));
  CUmemoryPool pools[2] = {};
  Client* const clients[] = {&client, &other};
  for (int at = 0; at < 2; ++at)
    CHECK_CUDA(client.cuda.cuDeviceGetDefaultMemPool(&pools[at], clients[at]->device));
  for (uint32_t step = 0; step < 4; ++step) {
    for (int at = 0; at < 2; ++at) {
      Client& at_work = *clients[at];
      enter(*clients[(static_cast<uint32_t>(at) + step) % 2]);
      CUdeviceptr sum = 0;
      CHECK_CUDA(client.cuda.cuMemAllocAsync(&sum, kBytes, at_work.stream));
      int ordinal = -1;
      CHECK_CUDA(
          client.cuda.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, sum));
      CHECK(ordinal == at_work.device);
      enter(at_work);
      at_work.fill(sum, step);
      std::vector<uint32_t> wanted = filled(step);
      std::vector<CUdeviceptr> stash(kCrowd);
      for (uint32_t i = 0; i < kCrowd; ++i) {
        CHECK_CUDA(client.cuda.cuMemAllocAsync(&stash[i], kBytes, at_work.stream));
        at_work.fill(stash[i], 1000 * i);
      }
      cuuint64_t used = 0;
      CHECK_CUDA(
          client.cuda.cuMemPoolGetAttribute(pools[at], CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
      CHECK(used == (kCrowd + 1) * kBytes);
      CHECK_CUDA(client.cuda.cuMemPoolGetAttribute(pools[1 - at], CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
                                                   &used));
      CHECK(used == 0);
      for (uint32_t i = kCrowd; i-- > 0;) {
        at_work.mix(sum, stash[i]);
        mix_on_host(wanted, filled(1000 * i));
        CHECK_CUDA(client.cuda.cuMemFreeAsync(stash[i], at_work.stream));
      }
      at_work.expect(sum, wanted);
      CHECK_CUDA(client.cuda.cuMemFreeAsync(sum, at_work.stream));
    }
  }
  // From the other's pool, in the order of the own stream.
  enter(client);
  CUdeviceptr there = 0;
  CHECK_CUDA(client.cuda.cuMemAllocFromPoolAsync(&there, kBytes, pools[1], client.stream));
  int ordinal = -1;
  CHECK_CUDA(
      client.cuda.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, there));
  CHECK(ordinal == other.device);
  client.fill(there, 77);
  order(client, other);
  const std::vector<CUdeviceptr> crowd = other.crowd(kCrowd);
  other.expect(there, filled(77));
  other.disperse(crowd);
  CHECK_CUDA(client.cuda.cuMemFreeAsync(there, other.stream));
  CHECK_CUDA(other.cuda.cuCtxSynchronize());
}

// Each device has its own limit, and what lives on one is not counted on the other.
void answers_by_device(Client& client) {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  Client other = second_device(client);
  CHECK_CUDA(client.cuda.cuMemGetInfo(&free_bytes, &total_bytes));
  const size_t limit_bytes = total_bytes;
  CHECK(limit_bytes < kCrowd * kBytes && free_bytes == limit_bytes);
  enter(client);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  enter(other);
  CHECK_CUDA(client.cuda.cuMemGetInfo(&free_bytes, &total_bytes));
  CHECK(total_bytes == limit_bytes && free_bytes == limit_bytes);
  const CUdeviceptr theirs = other.allocate();
  CHECK_CUDA(client.cuda.cuMemGetInfo(&free_bytes, &total_bytes));
  CHECK(total_bytes == limit_bytes && free_bytes == limit_bytes - kBytes);
  for (const CUdeviceptr at : {buffers[0], buffers[kCrowd - 1], theirs}) {
    CUcontext context = nullptr;
    CUdeviceptr base = 0;
    size_t bytes = 0;
    CHECK_CUDA(client.cuda.cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, at + 64));
    CHECK(context == (at == theirs ? other.context : client.context));
    CHECK_CUDA(client.cuda.cuMemGetAddressRange(&base, &bytes, at + 64));
    CHECK(base == at && bytes == kBytes);
  }
  enter(client);
  CHECK_CUDA(client.cuda.cuMemGetInfo(&free_bytes, &total_bytes));
  CHECK(total_bytes == kCrowd * kBytes);
  client.disperse(buffers);
  client.free(theirs);
}

}  // namespace

const std::vector<Scenario> kDeviceScenarios = {
    {"devices-in-turn", &devices_in_turn},
    {"devices-in-threads", &devices_in_threads},
    {"two-devices", &two_devices},
    {"two-devices-two-threads", &two_devices_two_threads},
    {"device-reset", &device_reset},
    {"freed-from-other-device", &freed_from_other_device},
    {"stream-ordered-on-devices", &stream_ordered_on_devices},
    {"answers-by-device", &answers_by_device},
};

}  // namespace clients
