// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/heap.h"

#include <atomic>
#include <cstdlib>

#ifndef OFFLOAD_SANITIZED
#include <mimalloc.h>
#else
#include <malloc.h>
#endif

namespace offload {

namespace {
constinit std::atomic<size_t> in_use{0};

[[noreturn]] void out_of_host_memory() {
  std::abort();
}
}  // namespace

// What mimalloc finds in place of the environment (scripts/cmake/mimalloc.cmake).
extern "C" {
static char* no_variables[] = {nullptr};
[[gnu::visibility("hidden")]] char** offload_no_environment = no_variables;
[[gnu::visibility("hidden")]] char* offload_no_variable(const char*) {
  return nullptr;
}
}

// Sanitizers only see what goes through malloc.
#ifdef OFFLOAD_SANITIZED
void* own_allocate(size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr) out_of_host_memory();
  in_use.fetch_add(malloc_usable_size(memory), std::memory_order_relaxed);
  return memory;
}
void own_free(void* memory) {
  in_use.fetch_sub(malloc_usable_size(memory), std::memory_order_relaxed);
  std::free(memory);
}
#else
void* own_allocate(size_t bytes) {
  void* memory = mi_malloc(bytes);
  if (memory == nullptr) out_of_host_memory();
  in_use.fetch_add(mi_usable_size(memory), std::memory_order_relaxed);
  return memory;
}
void own_free(void* memory) {
  in_use.fetch_sub(mi_usable_size(memory), std::memory_order_relaxed);
  mi_free(memory);
}
#endif

size_t own_bytes_in_use() {
  return in_use.load(std::memory_order_relaxed);
}

}  // namespace offload
