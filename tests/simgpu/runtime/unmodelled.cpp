// SPDX-License-Identifier: Apache-2.0
// Functions of the runtime that exist so that programs which merely refer to them can be loaded. A
// call is refused, and says so once. The public header is not included: the names stand here
// without their parameters.

#include <driver_types.h>

#include <atomic>
#include <cstdio>

#include "tests/simgpu/runtime/thread.h"

namespace {

cudaError_t refuse(const char* name, std::atomic<bool>* said) {
  if (!said->exchange(true)) std::fprintf(stderr, "simgpu: %s is not modelled\n", name);
  return simgpu::runtime::remember(cudaErrorNotSupported);
}

}  // namespace

#define UNMODELLED(name)                                                 \
  extern "C" __attribute__((visibility("default"))) cudaError_t name() { \
    static std::atomic<bool> said{false};                                \
    return refuse(#name, &said);                                         \
  }
#include "tests/simgpu/runtime/unmodelled.def"
#undef UNMODELLED
