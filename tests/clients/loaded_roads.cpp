// SPDX-License-Identifier: Apache-2.0
// libcuda.so.1 opened at run time: as libraries that look entries up by name do, and as a static
// runtime does, which asks for cuGetProcAddress alone and for everything else through it.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "tests/clients/entries.h"

namespace clients {
namespace {

using Ask = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
constexpr int kVersion = 12080;

void* driver() {
  static void* const handle = dlopen("libcuda.so.1", RTLD_NOW);
  if (handle == nullptr) {
    std::fprintf(stderr, "client: %s\n", dlerror());
    std::exit(2);
  }
  return handle;
}

[[noreturn]] void missing(const char* what) {
  std::fprintf(stderr, "client: the driver has no %s\n", what);
  std::exit(2);
}

void* by_name(const std::string& symbol, bool per_thread) {
  for (const char* suffix : {"_ptsz", "_ptds", ""}) {
    if (*suffix != '\0' && !per_thread) continue;
    if (void* found = dlsym(driver(), (symbol + suffix).c_str())) return found;
  }
  missing(symbol.c_str());
}

// Before CUDA 12 the door did not say why it has no answer.
CUresult old_door(const char* base, void** found, int version, cuuint64_t flags,
                  CUdriverProcAddressQueryResult* status) {
  using OldAsk = CUresult (*)(const char*, void**, int, cuuint64_t);
  static const auto ask = reinterpret_cast<OldAsk>(dlsym(driver(), "cuGetProcAddress"));
  if (ask == nullptr) missing("cuGetProcAddress");
  if (status != nullptr) *status = CU_GET_PROC_ADDRESS_SUCCESS;
  return ask(base, found, version, flags);
}

// The runtime asks the first door for the second, and goes on with the answer.
Ask door() {
  static const Ask ask = [] {
    const auto first = reinterpret_cast<Ask>(dlsym(driver(), "cuGetProcAddress_v2"));
    if (first == nullptr) return &old_door;
    void* second = nullptr;
    if (first == nullptr ||
        first("cuGetProcAddress", &second, kVersion, 0, nullptr) != CUDA_SUCCESS) {
      missing("cuGetProcAddress");
    }
    return reinterpret_cast<Ask>(second);
  }();
  return ask;
}

void* by_question(const char* base, bool per_thread) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const cuuint64_t flags = per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                      : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
  const CUresult result = door()(base, &found, kVersion, flags, &status);
  if (result != CUDA_SUCCESS || found == nullptr || status != CU_GET_PROC_ADDRESS_SUCCESS)
    missing(base);
  return found;
}

}  // namespace

#define TEXT_OF(name) #name
#define SYMBOL_OF(name) TEXT_OF(name)

Cuda take_road(const std::string& road) {
  const bool per_thread = road.ends_with("-per-thread");
  const bool by_dlsym = road.starts_with("dlsym");
  if (!by_dlsym && !road.starts_with("proc")) missing(road.c_str());
  Cuda cuda;
#define ENTRY(name)                                  \
  cuda.name = reinterpret_cast<decltype(cuda.name)>( \
      by_dlsym ? by_name(SYMBOL_OF(name), per_thread) : by_question(#name, per_thread));
  CLIENT_ENTRIES(ENTRY)
#undef ENTRY
  cuda.other = [](const char* base) -> void* {
    void* found = nullptr;
    return door()(base, &found, kVersion, 0, nullptr) == CUDA_SUCCESS ? found : nullptr;
  };
  return cuda;
}

}  // namespace clients
