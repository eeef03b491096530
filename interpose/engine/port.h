// SPDX-License-Identifier: Apache-2.0
#pragma once
// The small driver interface under the engine: all that the state machine asks of a GPU.
// interpose/driver/ implements it over the CUDA driver API; tests implement it over a model, so
// that the shipped state machine runs through every interleaving and failure. Nothing here includes
// cuda.h.
//
// Threads: the engine calls it from hooks and from the worker, with its own mutex held but for the
// calls marked [no lock]. Errors: a failing call has logged API, code and what happens instead; the
// engine rolls its own state back.

#include <cstdint>
#include <mutex>

#include "interpose/engine/edges.h"

namespace offload {

enum class Status : uint8_t {
  kOk,
  kNotReady,     // an event that has not passed
  kOutOfMemory,  // no physical memory, or no room for what was asked
  kInvalid,      // the caller's fault: answered with the driver's own code
  kNotOurs,      // an address that the engine does not know: the hook forwards
  kError,        // the driver refused
};

using Address = uint64_t;
using Handle = uint64_t;  // one physical allocation
using Event = void*;

// A stream as the driver knows it, with the context that gives the special handles (null, 1, 2)
// their meaning.
struct NativeStream {
  void* stream = nullptr;
  void* context = nullptr;
};

enum class Lane : uint8_t {
  kOut,
  kIn
};  // the engine's two own streams: device to host, host to device
enum class Place : uint8_t { kDevice, kHost };  // where a physical allocation lives

class Port {
 public:
  virtual ~Port() = default;

  // Address space. `bytes` and the result are multiples of the granularity.
  virtual Status reserve(uint64_t bytes, Address* out) = 0;

  // Physical memory. create/release count references as the driver does.
  virtual Status create(Place place, uint64_t bytes, Handle* out) = 0;
  virtual void release(Handle handle) = 0;
  // Maps the whole of `handle` at `at` and grants access to the device (and to the CPU for
  // Place::kHost with `cpu`). On failure nothing stays mapped. The address shows nothing before.
  virtual Status map(Address at, uint64_t bytes, Handle handle, Place place, bool cpu) = 0;
  // Unmaps exactly one mapping. Does not wait for work.  [no lock]
  virtual Status unmap(Address at, uint64_t bytes) = 0;

  // Page-locked host memory for slots that are never mapped at a program's address.
  virtual Status allocate_pinned(uint64_t bytes, Address* out) = 0;
  virtual void free_pinned(Address at) = 0;

  // `record` marks all that was submitted to the stream so far. A null, 1 or 2 handle is meant in
  // the stream's context, whatever is current. An event is recorded on streams of the `context`
  // that it was made in alone; any stream may wait for it. Only timed events may be given to
  // elapsed().
  virtual Status create_event(void* context, bool timed, Event* out) = 0;
  virtual void destroy_event(Event event) = 0;
  virtual Status record(Event event, const NativeStream& stream) = 0;
  virtual Status wait(const NativeStream& stream, Event event) = 0;
  virtual Status query(Event event) = 0;        // kOk: passed; kNotReady
  virtual Status synchronize(Event event) = 0;  // blocks the host  [no lock]
  virtual Status elapsed(Event begin, Event end, uint64_t* nanoseconds) = 0;
  virtual Status synchronize_stream(const NativeStream& stream) = 0;  // [no lock]

  virtual NativeStream lane(Lane lane) = 0;
  virtual Status copy(Lane lane, Address to, Address from, uint64_t bytes) = 0;

  // For OFFLOAD_VERIFY: a checksum of `bytes` of host memory at `at`, and of device memory
  // (synchronous).
  virtual uint64_t checksum_host(Address at, uint64_t bytes) = 0;
  virtual Status checksum_device(Address at, uint64_t bytes, uint64_t* out) = 0;

  virtual uint64_t now_nanoseconds() = 0;
  // The device answers nothing any more: what failed says nothing of how much memory there is.
  virtual bool lost() { return false; }
  // Called where a thread is about to wait for another thread; tests, which play several threads in
  // one, let the other go on here (with the lock released), and say true: no need to sleep.
  virtual bool host_waits(std::unique_lock<Mutex>&) { return false; }
};

}  // namespace offload
