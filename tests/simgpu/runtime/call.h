// SPDX-License-Identifier: Apache-2.0
#pragma once
// How every function of the runtime is made: enter (driver open, context current), do, remember the
// error.

#include <cuda.h>
#include <driver_types.h>

#include "tests/simgpu/runtime/dead_stack.h"
#include "tests/simgpu/runtime/driver.h"
#include "tests/simgpu/runtime/thread.h"

// The exported functions; everything else in the library is hidden.
#define RUNTIME_API extern "C" __attribute__((visibility("default"))) cudaError_t

// A function that programs call all the time. Its body is a frame of its own, so that nothing of it
// is left on the stack (dead_stack.h).
#define RUNTIME_WIPED(name, parameters, arguments)                     \
  __attribute__((noinline)) static cudaError_t name##_body parameters; \
  RUNTIME_API name parameters {                                        \
    const cudaError_t from_body = name##_body arguments;               \
    simgpu::wipe_dead_stack();                                         \
    return from_body;                                                  \
  }                                                                    \
  cudaError_t name##_body parameters

// A function and its twin for programs compiled with a per-thread default stream: both are
// `body<flavor> arguments`.
#define RUNTIME_PAIR(name, suffix, parameters, body, arguments) \
  RUNTIME_WIPED(name, parameters, arguments) {                  \
    return body<kLegacy> arguments;                             \
  }                                                             \
  RUNTIME_WIPED(name##suffix, parameters, arguments) {          \
    return body<kPerThread> arguments;                          \
  }

namespace simgpu::runtime {

// The runtime's codes are the driver's, with other names.
inline cudaError_t to_runtime(CUresult result) {
  return static_cast<cudaError_t>(result);
}

// An entry that the driver does not have is no crash.
template <class Function, class... Arguments>
cudaError_t call(Function* entry, Arguments... arguments) {
  if (entry == nullptr) return cudaErrorCallRequiresNewerDriver;
  return to_runtime(entry(arguments...));
}

inline CUdeviceptr to_device(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

// Makes the driver ready and, if the thread has no context, the primary context of its device
// current.
cudaError_t enter_context();

// For functions that work without a context.
template <class Body>
cudaError_t with_driver(Body body) {
  cudaError_t status = open_driver();
  if (status == cudaSuccess) status = body(driver());
  return remember(status);
}

template <class Body>
cudaError_t with_context(Body body) {
  cudaError_t status = enter_context();
  if (status == cudaSuccess) status = body(driver());
  return remember(status);
}

}  // namespace simgpu::runtime
