// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/heap.h"

#include <cstdlib>

#ifndef OFFLOAD_SANITIZED
#include <mimalloc.h>
#endif

namespace offload {

namespace {
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
  return memory;
}
void own_free(void* memory) {
  std::free(memory);
}
#else
void* own_allocate(size_t bytes) {
  void* memory = mi_malloc(bytes);
  if (memory == nullptr) out_of_host_memory();
  return memory;
}
void own_free(void* memory) {
  mi_free(memory);
}
#endif

}  // namespace offload
