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

// Whether a call may conflict with a capture that is under way, in this thread or in another
// (cuda.h, cuThreadExchangeStreamCaptureMode: "potentially unsafe API calls"). Which calls those
// are is not documented but for a few; here all that may wait for the device, that allocate or
// free, and that change mappings.
enum class Capturing { kHarmless, kUnsafe };

// Which stream a null handle means: legacy in the plain entries, per-thread in those that end in
// _ptsz or _ptds.
enum class DefaultStream { kLegacy, kPerThread };

// Names the entry that is being called, where the Call is made by a helper. The outermost counts.
class ApiName {
 public:
  explicit ApiName(const char* name);
  ~ApiName();
  ApiName(const ApiName&) = delete;
  ApiName& operator=(const ApiName&) = delete;

 private:
  bool outermost_;
};

class Call {
 public:
  // `api` is the entry's name unless an ApiName stands around it.
  explicit Call(Needs needs, Capturing capturing = Capturing::kHarmless,
                const char* api = __builtin_FUNCTION());
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  CUresult error;
  Lock lock;
  Context* context = nullptr;  // the current one; may be null with Needs::kDriver

  // The stream of a handle (null, 0x1 and 0x2 included), or null if there is no such stream.
  Stream* stream(CUstream handle, DefaultStream preset);
  // Why there is none: never was, or its green context has ended (cuda.h, cuGreenCtxDestroy).
  static CUresult no_stream(CUstream handle);
  // 900 if the call is unsafe now; spoils the captures that forbid it.
  static CUresult unsafe_error();
  // Why the stream takes no work: its context is lost, its capture invalid, or it is the default
  // stream while a blocking stream captures (which invalidates that capture).
  static CUresult stream_error(const Stream& stream);
  // The same for a call that waits for the stream or asks how far it is: a capturing one has
  // nothing to wait for.
  static CUresult wait_error(const Stream& stream);
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
    const simgpu::ApiName api_name(#symbol);                           \
    return body<simgpu::DefaultStream::kLegacy> arguments;             \
  }                                                                    \
  SIMGPU_API symbol##suffix parameters {                               \
    const simgpu::ApiName api_name(#symbol #suffix);                   \
    return body<simgpu::DefaultStream::kPerThread> arguments;          \
  }
