// SPDX-License-Identifier: Apache-2.0
#pragma once
// liboffload at work on one device: made at the program's first allocation under a device's primary
// context, never destroyed. Later processes' forks, exit and errors only take it away from the
// hooks: then everything is forwarded for ever.

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
  Session(const Device& device_found, const EngineConfig& engine_config, Policy& policy);
  // Lanes, window, pools, worker. An error leaves a session that must not be used.
  Status open();

  // The index of a stream as an entry with legacy or per-thread default streams means it. Makes
  // driver calls only for a stream that this thread has not used lately.
  StreamIndex stream(CUstream handle, bool per_thread_entry) {
    if (handle == nullptr) handle = per_thread_entry ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
    ThreadState& thread = this_thread;
    const ThreadState::CachedStream& cached = thread.streams[cache_slot(handle)];
    if (thread.stream_generation == stream_generation() && thread.owner == this &&
        cached.handle == handle) {
      return cached.index;
    }
    return find_stream(handle, false);
  }
  // The same for a stream of another context that is about to use our memory: it is followed from
  // now on.
  StreamIndex follow(CUstream handle, bool per_thread_entry) {
    if (handle == nullptr) handle = per_thread_entry ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
    return find_stream(handle, true);
  }
  bool is_own(StreamIndex stream) const {
    return is_followed(stream) && engine.native(stream).context == device.context;
  }
  // The pins of the calling thread.
  ThreadPins& pins() {
    if (this_thread.owner != this) [[unlikely]]
      adopt_thread();
    return *this_thread.pins;
  }
  bool is_default_pool(CUmemoryPool pool) const {
    return default_pool != nullptr && pool == default_pool;
  }
  // What is evicted comes home, and nothing moves from here on. `sentence` ends the one line that
  // is said.
  void give_up(Reason reason, const char* sentence);

  const Device device;
  const EngineConfig config;
  DriverPort port;
  Engine engine;
  GraphNames graphs;
  Layouts layouts;
  Worker worker;
  bool native = false;  // PyTorch keeps its own cache, so the driver serves; set before it is used
  NativeMemory native_memory{statistics()};
  CUmemoryPool default_pool = nullptr;
  std::atomic<bool> default_pool_is_current{true};  // cuMemAllocAsync takes from it
  std::atomic<uint64_t> pool_used_high{0};          // marks that the program may reset
  std::atomic<uint64_t> pool_reserved_high{0};
  Session* earlier = nullptr;

 private:
  static size_t cache_slot(CUstream handle) {
    const auto value = reinterpret_cast<uintptr_t>(handle);
    return (value ^ (value >> 4) ^ (value >> 9)) % ThreadState::kCachedStreams;
  }
  StreamIndex find_stream(CUstream handle, bool even_foreign);
  void adopt_thread();
};

extern std::atomic<Session*> active_session;
// The one made last, working or not; null if there was none.
Session* last_session();

// What the hooks of this thread work with; null: forward. A load and a thread-local flag.
inline Session* session() {
  Session* active = active_session.load(std::memory_order_acquire);
  return active != nullptr && !this_thread.inside ? active : nullptr;
}

// For an allocation: also makes the session, if there is none yet and there can be one, and answers
// null if another context than the session's is current.
Session* session_for_allocation();
// Whether the program ever asked for memory that a session could have served.
bool allocations_seen();
// One that is left to the driver because the options say so.
void note_allocation();
// The count of what the driver serves under this thread's context; null: it is not counted.
NativeMemory* native_memory();

// What a free gets where there is no session: the driver's answer. But where hooks forward although
// memory of ours is alive, the driver does not know the address, and the program, which is cleaning
// up, has done nothing wrong.
CUresult answer_to_free(CUresult by_driver, CUdeviceptr address);

// Hooks forward from now on.
void forward_from_now_on();
// In a forked child: true, and as before the first allocation, if there never was a session.
bool start_over_in_child();
// Some context died: its handle may be another's tomorrow.
void a_context_died();
// That context died. If it is the session's, the session goes with it, and the next allocation
// makes another.
void context_died(CUcontext context);
// A forwarded call came back with this.
void note_result(CUresult result);

}  // namespace offload
