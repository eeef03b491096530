// SPDX-License-Identifier: Apache-2.0
// Libraries that are opened and closed while buffers move.

#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/clients/client.h"

namespace clients {
namespace {

constexpr uint32_t kCrowd = 20;

void look_at_all(Client& client, const std::vector<CUdeviceptr>& buffers) {
  for (size_t i = 0; i < buffers.size(); ++i)
    client.expect(buffers[i], filled(static_cast<uint32_t>(1000 * i)));
}

void* open_plugin(int flags) {
  void* library = dlopen(CLIENT_PLUGIN, RTLD_NOW | flags);
  if (library == nullptr) fail(__FILE__, __LINE__, dlerror());
  return library;
}

template <typename... A>
CUresult call(void* library, const char* name, A... arguments) {
  const auto function = reinterpret_cast<int (*)(A...)>(dlsym(library, name));
  CHECK(function != nullptr);
  return static_cast<CUresult>(function(arguments...));
}

// A library makes streams and buffers and is closed; they live on, and its code is gone. Another
// copy of it may come to lie where it lay.
void closed_library(Client& client) {
  std::vector<CUdeviceptr> left;
  std::vector<CUstream> streams;
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  for (uint32_t round = 0; round < 10; ++round) {
    void* library = open_plugin(0);
    streams.push_back(nullptr);
    left.push_back(0);
    CHECK_CUDA(call(library, "plugin_begin", &streams.back(), &left.back(), size_t{kWords}, round));
    CHECK(dlclose(library) == 0);
    CHECK(dlopen(CLIENT_PLUGIN, RTLD_NOW | RTLD_NOLOAD) == nullptr);  // else this is no test
    client.expect(buffers[round], filled(1000 * round));
  }
  for (uint32_t round = 0; round < left.size(); ++round) {
    client.stream = streams[round];
    client.expect(left[round], std::vector<uint32_t>(kWords, round));
    client.mix(left[round], buffers[round]);
    std::vector<uint32_t> wanted(kWords, round);
    mix_on_host(wanted, filled(1000 * round));
    client.expect(left[round], wanted);
    CHECK_CUDA(client.cuda.cuStreamDestroy(streams[round]));
    client.free(left[round]);
  }
  client.stream = nullptr;
  look_at_all(client, buffers);
  client.disperse(buffers);
}

// A library that reaches the driver past everybody, and uses buffers that have left.
void deep_library(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  std::this_thread::sleep_for(std::chrono::milliseconds{300});  // addresses have changed hands
  void* library = open_plugin(RTLD_DEEPBIND);
  std::vector<uint32_t> found(kWords);
  for (uint32_t i = 0; i < kCrowd; ++i) {
    CHECK_CUDA(call(library, "plugin_read", found.data(), buffers[i], size_t{kWords}));
    CHECK(found == filled(1000 * i));
    CHECK_CUDA(call(library, "plugin_fill", buffers[i], size_t{16}, 1000 * i));
  }
  const std::vector<CUdeviceptr> more = client.crowd(kCrowd);
  for (uint32_t i = 0; i < kCrowd; ++i) {
    std::vector<uint32_t> wanted = filled(1000 * i);
    for (uint32_t word = 0; word < 16; ++word) wanted[word] = 1000 * i;
    client.expect(buffers[i], wanted);
    CHECK_CUDA(call(library, "plugin_read", found.data(), buffers[i], size_t{kWords}));
    CHECK(found == wanted);
  }
  look_at_all(client, more);
  client.disperse(more);
  client.disperse(buffers);
}

// A communication library's memory is registered with others: it is the driver's, and stays.
void foreign_library(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  void* library = dlopen(CLIENT_FOREIGN, RTLD_NOW);
  CHECK(library != nullptr);
  CUstream stream = nullptr;
  CUdeviceptr theirs = 0;
  CHECK_CUDA(call(library, "plugin_begin", &stream, &theirs, size_t{kWords}, uint32_t{6}));
  const std::vector<CUdeviceptr> more = client.crowd(kCrowd);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  client.stream = stream;
  client.mix(theirs, buffers[3]);
  std::vector<uint32_t> wanted(kWords, 6);
  mix_on_host(wanted, filled(3000));
  client.expect(theirs, wanted);
  client.free(theirs);
  CHECK_CUDA(client.cuda.cuStreamDestroy(stream));
  client.stream = nullptr;
  look_at_all(client, buffers);
  client.disperse(more);
  client.disperse(buffers);
}

// The program maps memory of its own, of the device and of the host, and mixes it with buffers that
// have left.
void own_mappings(Client& client) {
  const auto ask = [&](const char* name) {
    void* found = client.cuda.other(name);
    CHECK(found != nullptr);
    return found;
  };
  const auto reserve = reinterpret_cast<decltype(&cuMemAddressReserve)>(ask("cuMemAddressReserve"));
  const auto create = reinterpret_cast<decltype(&cuMemCreate)>(ask("cuMemCreate"));
  const auto map = reinterpret_cast<decltype(&cuMemMap)>(ask("cuMemMap"));
  const auto access = reinterpret_cast<decltype(&cuMemSetAccess)>(ask("cuMemSetAccess"));
  const auto unmap = reinterpret_cast<decltype(&cuMemUnmap)>(ask("cuMemUnmap"));
  const auto release = reinterpret_cast<decltype(&cuMemRelease)>(ask("cuMemRelease"));
  const auto give_back = reinterpret_cast<decltype(&cuMemAddressFree)>(ask("cuMemAddressFree"));
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  for (const CUmemLocation where : {CUmemLocation{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                    CUmemLocation{CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}}) {
    CUmemAllocationProp kind{};
    kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    kind.location = where;
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr at = 0;
    CHECK_CUDA(reserve(&at, kBytes, 0, 0, 0));
    CHECK_CUDA(create(&handle, kBytes, &kind, 0));
    CHECK_CUDA(map(at, kBytes, 0, handle, 0));
    const CUmemAccessDesc ours{{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CHECK_CUDA(access(at, kBytes, &ours, 1));
    client.fill(at, 9);
    std::vector<uint32_t> wanted = filled(9);
    for (uint32_t i = 0; i < kCrowd; ++i) {
      client.mix(at, buffers[i]);
      mix_on_host(wanted, filled(1000 * i));
    }
    client.expect(at, wanted);
    CHECK_CUDA(unmap(at, kBytes));
    CHECK_CUDA(release(handle));
    CHECK_CUDA(give_back(at, kBytes));
  }
  look_at_all(client, buffers);
  client.disperse(buffers);
}

// A communication library comes to lie where another library lay, and is known as one.
void nccl_where_another_was(Client& client) {
  const auto page_of = [](void* library) {
    return reinterpret_cast<uintptr_t>(dlsym(library, "plugin_begin")) >> 12;
  };
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CUdeviceptr left[2] = {};
  CUstream streams[2] = {};
  void* library = open_plugin(0);
  const uintptr_t page = page_of(library);
  CHECK_CUDA(call(library, "plugin_begin", &streams[0], &left[0], size_t{kWords}, uint32_t{5}));
  CHECK(dlclose(library) == 0);
  library = dlopen(CLIENT_FOREIGN, RTLD_NOW);
  CHECK(library != nullptr && page_of(library) == page);  // else this is no test
  CHECK_CUDA(call(library, "plugin_begin", &streams[1], &left[1], size_t{kWords}, uint32_t{6}));
  for (uint32_t i = 0; i < 2; ++i) {
    client.stream = streams[i];
    client.expect(left[i], std::vector<uint32_t>(kWords, 5 + i));
    client.free(left[i]);
  }
  client.stream = nullptr;
  look_at_all(client, buffers);
  client.disperse(buffers);
}

// While a library's constructor runs, its thread holds the loader's lock. It waits for another
// thread, which launches a kernel for the first time.
struct Meanwhile {
  Client& client;
  CUfunction fill;
  CUdeviceptr to;
  void launch() {
    CHECK_CUDA(client.cuda.cuCtxSetCurrent(client.context));
    uint32_t words = kWords;
    uint32_t seed = 12;
    client.launch(fill, {&to, &words, &seed}, {sizeof(to), sizeof(words), sizeof(seed)});
    CHECK_CUDA(client.cuda.cuCtxSynchronize());
  }
};

void launch_while_loading(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  Meanwhile meanwhile{client, nullptr, client.allocate()};
  CHECK_CUDA(client.cuda.cuModuleGetFunction(&meanwhile.fill, client.load(), "fill"));
  void (*const run)(void*) = [](void* what) {
    std::thread([what] { static_cast<Meanwhile*>(what)->launch(); }).join();
  };
  char call[64];
  std::snprintf(call, sizeof(call), "%p %p", reinterpret_cast<void*>(run),
                static_cast<void*>(&meanwhile));
  CHECK(setenv("CLIENT_WHILE_LOADING", call, 1) == 0);
  open_plugin(0);
  unsetenv("CLIENT_WHILE_LOADING");
  client.expect(meanwhile.to, filled(12));
  look_at_all(client, buffers);
  client.free(meanwhile.to);
  client.disperse(buffers);
}

// Threads look up everything that the driver may have, while buffers move. Whoever asks gets the
// same answer.
void all_names_at_once(Client& client) {
  static constexpr const char* kBases[] = {
#define HOOK(symbol, base, ...) #base,
#define TRAP(symbol, base) #base,
#define HARMLESS(base) #base,
#include "interpose/hooks.def"
  };
  static constexpr const char* kSymbols[] = {
#define HOOK(symbol, ...) #symbol,
#define TRAP(symbol, base) #symbol,
#include "interpose/hooks.def"
  };
  constexpr size_t kThreads = 4;
  std::vector<void*> answers[kThreads];
  std::vector<std::thread> threads;
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  CHECK(driver != nullptr);
  for (std::vector<void*>& found : answers) {
    threads.emplace_back([&client, &found, driver] {
      for (const char* base : kBases) found.push_back(client.cuda.other(base));
      for (const char* symbol : kSymbols) found.push_back(dlsym(driver, symbol));
    });
  }
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<void*>& found : answers) CHECK(found == answers[0]);
  size_t there = 0;
  for (const void* each : answers[0]) there += each != nullptr ? 1 : 0;
  std::printf("%zu of %zu\n", there, answers[0].size());
  look_at_all(client, buffers);
  client.disperse(buffers);
}

}  // namespace

const std::vector<Scenario> kLibraryScenarios = {
    {"nccl-where-another-was", &nccl_where_another_was},
    {"closed-library", &closed_library},
    {"launch-while-loading", &launch_while_loading},
    {"deep-library", &deep_library},
    {"foreign-library", &foreign_library},
    {"own-mappings", &own_mappings},
    {"all-names-at-once", &all_names_at_once},
};

}  // namespace clients
