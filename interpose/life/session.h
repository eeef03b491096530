// SPDX-License-Identifier: Apache-2.0
#pragma once
// liboffload at work on one device: made at the program's first allocation under that device's
// primary context, never destroyed. Later processes' forks, exit and errors only take it away from
// the hooks: then everything is forwarded for ever. Which there are: sessions.h.

#include <atomic>

#include "interpose/driver/device.h"
#include "interpose/driver/driver_port.h"
#include "interpose/engine/engine.h"
#include "interpose/graphs/graph_names.h"
#include "interpose/life/native_memory.h"
#include "interpose/life/thread_state.h"
#include "interpose/life/worker.h"
#include "interpose/naming/layouts.h"
#include "policies/registry.h"

namespace offload {

// Streams that the engine does not follow, and why: it belongs to another context than ours, and
// has not used our memory yet; the driver will refuse it (it is gone, or no context is current);
// there are too many.
inline constexpr StreamIndex kForeignStream = kNoStream;
inline constexpr StreamIndex kRefusedStream = kNoStream - 1;
inline constexpr StreamIndex kUncountedStream = kNoStream - 2;
inline bool is_followed(StreamIndex stream) {
  return stream < kUncountedStream;
}

struct Session {
  // What the sessions of a process share, and what is one's own and outlives it.
  struct Surroundings {
    GraphNames& graphs;
    Layouts& layouts;
    Statistics& counts;  // of the device, part of the process's
    Policy& policy;
  };
  Session(const Device& device_found, const EngineConfig& engine_config,
          const Surroundings& surroundings);
  // Lanes, window, pools, worker. An error leaves a session that must not be used.
  Status open();

  // The index of a stream as an entry with legacy or per-thread default streams means it. Makes
  // driver calls only for a stream that this thread has not used lately.
  StreamIndex stream(CUstream handle, bool per_thread_entry) {
    return stream(of_thread(), handle, per_thread_entry);
  }
  StreamIndex stream(const ThreadState::OfDevice& own, CUstream handle, bool per_thread_entry) {
    handle = explicit_handle(handle, per_thread_entry);
    uintptr_t key = reinterpret_cast<uintptr_t>(handle);
    if (is_special(handle)) {
      if (!this_thread.context_known) [[unlikely]]
        return find_stream(handle, false);
      key = key_of(handle, this_thread.context);
    }
    const ThreadState::CachedStream& cached = own.streams[cache_slot(key)];
    if (own.stream_generation == stream_generation() && cached.key == key) [[likely]]
      return cached.index;
    return find_stream(handle, false);
  }
  // The same for a stream of another context that is about to use our memory: it is followed from
  // now on.
  StreamIndex follow(CUstream handle, bool per_thread_entry) {
    return find_stream(explicit_handle(handle, per_thread_entry), true);
  }
  bool is_own(StreamIndex stream) const {
    return is_followed(stream) && engine.native(stream).context == device.context;
  }
  // What the calling thread keeps for this session; and its pins, which are among that.
  ThreadState::OfDevice& of_thread() {
    ThreadState::OfDevice& own = this_thread.devices[ordinal];
    if (own.owner != this) [[unlikely]]
      adopt_thread();
    return own;
  }
  ThreadPins& pins() { return *of_thread().pins; }
  bool is_default_pool(CUmemoryPool pool) const {
    return device.default_pool != nullptr && pool == device.default_pool;
  }

  const Device device;
  const uint32_t ordinal;  // of the device, below kMostDevices
  const EngineConfig config;
  Statistics& counts;
  DriverPort port;
  Engine engine;
  GraphNames& graphs;
  Layouts& layouts;
  Worker worker;
  bool native = false;  // PyTorch keeps its own cache, so the driver serves; set before it is used
  NativeMemory native_memory;
  std::atomic<bool> default_pool_is_current{true};  // cuMemAllocAsync takes from it
  std::atomic<uint64_t> pool_used_high{0};          // marks that the program may reset
  std::atomic<uint64_t> pool_reserved_high{0};
  std::atomic<Session*> next{nullptr};  // of another device, at work (sessions.h)
  Session* earlier = nullptr;           // made before this one, working or not

 private:
  static CUstream explicit_handle(CUstream handle, bool per_thread_entry) {
    if (handle != nullptr) return handle;
    return per_thread_entry ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  }
  // These handles mean another stream in each context.
  static bool is_special(CUstream handle) {
    return reinterpret_cast<uintptr_t>(handle) <= reinterpret_cast<uintptr_t>(CU_STREAM_PER_THREAD);
  }
  // What a thread remembers a stream by. Contexts are no odd addresses.
  static uintptr_t key_of(CUstream handle, const void* context) {
    const auto value = reinterpret_cast<uintptr_t>(handle);
    return is_special(handle) ? value | reinterpret_cast<uintptr_t>(context) : value;
  }
  static size_t cache_slot(uintptr_t key) {
    return (key ^ (key >> 4) ^ (key >> 9)) % ThreadState::kCachedStreams;
  }
  StreamIndex find_stream(CUstream handle, bool even_foreign);
  void adopt_thread();
};

}  // namespace offload
