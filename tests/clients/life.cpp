// SPDX-License-Identifier: Apache-2.0
// Things that end and begin again: contexts, streams, modules, threads.

#include <cstdio>
#include <thread>

#include "tests/clients/client.h"

namespace clients {
namespace {

constexpr uint32_t kCrowd = 20;

void look_at_all(Client& client, const std::vector<CUdeviceptr>& buffers) {
  for (size_t i = 0; i < buffers.size(); ++i)
    client.expect(buffers[i], filled(static_cast<uint32_t>(1000 * i)));
}

// The primary context is reset with buffers alive and some of them gone, and the program begins
// anew.
void context_reset(Client& client) {
  for (int life = 0; life < 3; ++life) {
    const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
    look_at_all(client, buffers);
    CHECK_CUDA(client.cuda.cuCtxSynchronize());
    CHECK_CUDA(client.cuda.cuDevicePrimaryCtxReset(client.device));
    client.start();
  }
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  look_at_all(client, buffers);
  client.disperse(buffers);
}

// Handles of streams come back for other streams at once, while the work of the first is still
// queued: what the first stream had waited for, the second has not.
void stream_handles(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  CUstream last = nullptr;
  uint32_t came_back = 0;
  for (uint32_t round = 0; round < 20; ++round) {
    const CUdeviceptr from = buffers[round * 7 % kCrowd];
    CUdeviceptr sums[2] = {client.allocate(), client.allocate()};
    for (const CUdeviceptr sum : sums) {
      CHECK_CUDA(client.cuda.cuStreamCreate(&client.stream, CU_STREAM_NON_BLOCKING));
      came_back += client.stream == last ? 1 : 0;
      last = client.stream;
      client.fill(sum, round);
      client.mix(sum, from);
      CHECK_CUDA(client.cuda.cuStreamDestroy(client.stream));
    }
    client.stream = nullptr;
    CHECK_CUDA(client.cuda.cuCtxSynchronize());
    std::vector<uint32_t> wanted = filled(round);
    mix_on_host(wanted, filled(1000 * (round * 7 % kCrowd)));
    for (const CUdeviceptr sum : sums) {
      client.expect(sum, wanted);
      client.free(sum);
    }
  }
  CHECK(came_back > 10);  // else this is no test
  client.disperse(buffers);
}

// Which of the two kernels it is, whose parameters differ; waits.
void mix_by(Client& client, CUfunction function, bool reversed, CUdeviceptr to, CUdeviceptr from) {
  uint32_t words = kWords;
  uint32_t nothing = 0;
  if (reversed) {
    client.launch(function, {&words, &nothing, &from, &to}, {4, 4, 8, 8});
  } else {
    client.launch(function, {&to, &from, &words}, {8, 8, 4});
  }
  CHECK_CUDA(client.cuda.cuStreamSynchronize(client.stream));
}

// A module goes, another comes, and its function has the handle of one with other parameters.
void module_handles(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  const CUdeviceptr sum = client.allocate();
  client.fill(sum, 4);
  std::vector<uint32_t> wanted = filled(4);
  CUfunction last = nullptr;
  uint32_t came_back = 0;
  for (uint32_t round = 0; round < 20; ++round) {
    CUmodule module = client.load();
    CUfunction function = nullptr;
    const bool reversed = round % 2 == 1;
    CHECK_CUDA(
        client.cuda.cuModuleGetFunction(&function, module, reversed ? "mix_reversed" : "mix"));
    came_back += function == last ? 1 : 0;
    last = function;
    mix_by(client, function, reversed, sum, buffers[round]);
    mix_on_host(wanted, filled(1000 * round));
    CHECK_CUDA(client.cuda.cuModuleUnload(module));
  }
  CHECK(came_back > 10);  // else this is no test
  client.expect(sum, wanted);
  client.disperse(buffers);
}

// The same of libraries, whose kernels belong to no context and are launched as functions.
void library_handles(Client& client) {
  const auto load = ENTRY_OF(client, cuLibraryLoadData);
  const auto kernel_of = ENTRY_OF(client, cuLibraryGetKernel);
  const auto unload = ENTRY_OF(client, cuLibraryUnload);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  const CUdeviceptr sum = client.allocate();
  client.fill(sum, 4);
  std::vector<uint32_t> wanted = filled(4);
  CUfunction last = nullptr;
  uint32_t came_back = 0;
  for (uint32_t round = 0; round < 20; ++round) {
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    const bool reversed = round % 2 == 1;
    CHECK_CUDA(load(&library, kernel_code().c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    CHECK_CUDA(kernel_of(&kernel, library, reversed ? "mix_reversed" : "mix"));
    const auto function = reinterpret_cast<CUfunction>(kernel);
    came_back += function == last ? 1 : 0;
    last = function;
    mix_by(client, function, reversed, sum, buffers[round]);
    mix_on_host(wanted, filled(1000 * round));
    CHECK_CUDA(unload(library));
  }
  CHECK(came_back > 10);  // else this is no test
  client.expect(sum, wanted);
  client.disperse(buffers);
}

// A context of the program's own: its memory is the driver's affair, whatever becomes of ours
// beside it.
void own_context(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  CUcontext own = nullptr;
  CUctxCreateParams parameters{};
  CHECK_CUDA(client.cuda.cuCtxCreate(&own, &parameters, 0, client.device));
  CUdeviceptr theirs = 0;
  CHECK_CUDA(client.cuda.cuMemAlloc(&theirs, kBytes));
  CHECK_CUDA(client.cuda.cuMemsetD32(theirs, 5, kWords));
  std::vector<uint32_t> found(kWords);
  CHECK_CUDA(client.cuda.cuMemcpyDtoH(found.data(), theirs, kBytes));
  CHECK(found == std::vector<uint32_t>(kWords, 5));
  CHECK_CUDA(client.cuda.cuMemFree(theirs));
  CHECK_CUDA(client.cuda.cuCtxDestroy(own));
  CHECK_CUDA(client.cuda.cuCtxSetCurrent(client.context));
  look_at_all(client, buffers);
  client.disperse(buffers);
}

using Grant = CUresult (*)(Client& client, CUcontext owner);

// The second device reads buffers of the first: those that were there when access was given, some
// of which had left, and those that came later.
void read_by_peer(Client& client, Grant grant, CUdeviceptr (*allocate)(Client&), bool first) {
  constexpr uint32_t kAll = kCrowd + 5;
  Client other = client;
  std::vector<CUdeviceptr> buffers;
  const auto more = [&](uint32_t count) {
    CHECK_CUDA(client.cuda.cuCtxSetCurrent(client.context));
    for (uint32_t i = static_cast<uint32_t>(buffers.size()); i < count; ++i) {
      buffers.push_back(allocate(client));
      client.fill(buffers.back(), 1000 * i);
    }
    CHECK_CUDA(client.cuda.cuCtxSynchronize());
  };
  if (!first) more(kCrowd);
  other.start(1);
  const CUresult granted = grant(client, client.context);
  if (granted == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED) {
    std::puts("waived: this driver knows no peers");
  } else {
    CHECK_CUDA(granted);
    more(kAll);
    CHECK_CUDA(client.cuda.cuCtxSetCurrent(other.context));
    const CUdeviceptr sum = other.allocate();
    other.fill(sum, 4);
    std::vector<uint32_t> wanted = filled(4);
    for (uint32_t i = 0; i < kAll; ++i) {
      other.mix(sum, buffers[i]);
      mix_on_host(wanted, filled(1000 * i));
    }
    other.expect(sum, wanted);
    other.free(sum);
  }
  CHECK_CUDA(client.cuda.cuCtxSetCurrent(client.context));
  look_at_all(client, buffers);
  client.disperse(buffers);
}

void peer_access(Client& client) {
  const Grant by_context = [](Client& asks, CUcontext owner) {
    using Enable = CUresult (*)(CUcontext, unsigned);
    const auto enable = reinterpret_cast<Enable>(asks.cuda.other("cuCtxEnablePeerAccess"));
    CHECK(enable != nullptr);
    return enable(owner, 0);
  };
  read_by_peer(
      client, by_context, [](Client& of) { return of.allocate(); }, false);
}

// What was given is taken back: of what is there and of what comes.
void peer_access_taken(Client& client) {
  const auto give = ENTRY_OF(client, cuCtxEnablePeerAccess);
  const auto take = ENTRY_OF(client, cuCtxDisablePeerAccess);
  const auto access = ENTRY_OF(client, cuMemGetAccess);
  Client other = client;
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  const auto access_of_other = [&](CUdeviceptr at) {
    unsigned long long flags = ~0ull;
    const CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, {1}};
    CHECK_CUDA(access(&flags, &location, at));
    return flags;
  };
  other.start(1);
  CHECK_CUDA(give(client.context, 0));
  CHECK(access_of_other(buffers[0]) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CHECK_CUDA(take(client.context));
  CHECK_CUDA(client.cuda.cuCtxSetCurrent(client.context));
  CHECK(access_of_other(buffers[0]) == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  CHECK(access_of_other(buffers[1]) == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  const CUdeviceptr later = client.allocate(4 * kBytes);
  CHECK(access_of_other(later) == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  look_at_all(client, buffers);
  client.free(later);
  client.disperse(buffers);
}

// The device's pool gives access, as PyTorch asks for it.
void read_from_pool(Client& client, bool first) {
  const Grant by_pool = [](Client& asks, CUcontext) {
    using SetAccess = CUresult (*)(CUmemoryPool, const CUmemAccessDesc*, size_t);
    const auto set_access = reinterpret_cast<SetAccess>(asks.cuda.other("cuMemPoolSetAccess"));
    CHECK(set_access != nullptr);
    CUmemoryPool pool = nullptr;
    CHECK_CUDA(asks.cuda.cuDeviceGetDefaultMemPool(&pool, asks.device));
    const CUmemAccessDesc both[] = {
        {{CU_MEM_LOCATION_TYPE_DEVICE, {asks.device}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
        {{CU_MEM_LOCATION_TYPE_DEVICE, {1}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    return set_access(pool, both, 2);
  };
  const auto allocate = [](Client& of) {
    CUdeviceptr at = 0;
    CHECK_CUDA(of.cuda.cuMemAllocAsync(&at, kBytes, of.stream));
    return at;
  };
  read_by_peer(client, by_pool, allocate, first);
}
void pool_access(Client& client) {
  read_from_pool(client, false);
}
void pool_access_first(Client& client) {
  read_from_pool(client, true);
}

// After an error that ends the context every call says so, as it does without liboffload, and the
// program can still end.
void sticky_error(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  client.fill(0x1234000, 1);
  CHECK_RESULT(client.cuda.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdeviceptr at = 0;
  CHECK_RESULT(client.cuda.cuMemAlloc(&at, kBytes), CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_RESULT(client.cuda.cuMemsetD32(buffers[0], 5, kWords), CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_RESULT(client.cuda.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

// Forward on one thread, backward on another, and a third that lives on its own buffers.
void threads(Client& client) {
  const auto work = [&](uint32_t seed) {
    CHECK_CUDA(client.cuda.cuCtxSetCurrent(client.context));
    Client own = client;
    CHECK_CUDA(own.cuda.cuStreamCreate(&own.stream, CU_STREAM_NON_BLOCKING));
    for (int step = 0; step < 2; ++step) {
      const CUdeviceptr sum = own.allocate();
      own.fill(sum, seed);
      std::vector<uint32_t> wanted = filled(seed);
      const std::vector<CUdeviceptr> stash = own.crowd(kCrowd / 2);
      std::thread([&] {
        CHECK_CUDA(own.cuda.cuCtxSetCurrent(own.context));
        for (size_t i = stash.size(); i-- > 0;) own.mix(sum, stash[i]);
      }).join();
      for (size_t i = stash.size(); i-- > 0;)
        mix_on_host(wanted, filled(static_cast<uint32_t>(1000 * i)));
      own.expect(sum, wanted);
      own.disperse(stash);
      own.free(sum);
    }
    CHECK_CUDA(own.cuda.cuStreamDestroy(own.stream));
  };
  std::thread other(work, 100);
  std::thread third(work, 200);
  work(300);
  other.join();
  third.join();
}

}  // namespace

const std::vector<Scenario> kLifeScenarios = {
    {"context-reset", &context_reset},
    {"stream-handles", &stream_handles},
    {"module-handles", &module_handles},
    {"library-handles", &library_handles},
    {"own-context", &own_context},
    {"peer-access", &peer_access},
    {"peer-access-taken", &peer_access_taken},
    {"pool-access", &pool_access},
    {"pool-access-first", &pool_access_first},
    {"sticky-error", &sticky_error},
    {"threads", &threads},
};

}  // namespace clients
