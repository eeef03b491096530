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
