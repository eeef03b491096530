// SPDX-License-Identifier: Apache-2.0
#pragma once
// The prologue of every entry: is the driver usable, the lock, the calling thread's context. Each
// entry begins with `Call call(...); if (call.error) return call.error;`.

#include <cuda.h>

#include <utility>

#include "tests/simgpu/driver/context.h"
#include "tests/simgpu/driver/lock.h"
#include "tests/simgpu/exec/stream.h"

namespace simgpu {

enum class Needs { kDriver, kContext };

// Which stream a null handle means: legacy in the plain entries, per-thread in those that end in
// _ptsz or _ptds.
enum class DefaultStream { kLegacy, kPerThread };

class Call {
 public:
  explicit Call(Needs needs);
  CUresult error;
  Lock lock;
  Context* context = nullptr;  // the current one; may be null with Needs::kDriver

  // The stream of a handle (null, 0x1 and 0x2 included), or null if there is no such stream.
  Stream* stream(CUstream handle, DefaultStream preset);
};

// CUDA_SUCCESS between cuInit and the end of the process, outside forked children.
CUresult driver_status();
CUresult initialize_driver();
// Called at the very end of the process.
void deinitialize_driver();
// True in a child of a process that had initialised the driver.
bool is_forked_child();

}  // namespace simgpu

// Defines an exported entry.
#define SIMGPU_API extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI
// Defines `symbol` and its per-thread twin from one body: a function template
// body<DefaultStream>(...).
#define SIMGPU_STREAM_API(symbol, suffix, body, parameters, arguments) \
  SIMGPU_API symbol parameters {                                       \
    return body<simgpu::DefaultStream::kLegacy> arguments;             \
  }                                                                    \
  SIMGPU_API symbol##suffix parameters {                               \
    return body<simgpu::DefaultStream::kPerThread> arguments;          \
  }
