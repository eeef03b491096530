// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/session.h"

#include "interpose/driver/errors.h"
#include "interpose/driver/peers.h"
#include "interpose/driver/table.h"
#include "interpose/graphs/captures.h"
#include "interpose/life/exit.h"
#include "interpose/life/fail_closed.h"
#include "interpose/life/make_session.h"
#include "interpose/life/not_cancelled.h"
#include "interpose/life/start.h"
#include "interpose/naming/ask_driver.h"
#include "profiler/base/log.h"

namespace offload {

constinit std::atomic<Session*> active_session{nullptr};

namespace {

constexpr uint32_t kAllocationsBetweenChecks = 64;

constinit std::atomic<Session*> newest{nullptr};
constinit std::atomic<bool> seen{false};
constinit std::atomic<bool> forwarding{false};  // for ever
constinit std::atomic<void*> refused_context{
    nullptr};                 // asked already: not one that can be managed
constinit std::mutex making;  // only ever one session at a time is made; held across driver calls,
                              // as nobody else waits for it

// One device, and its primary context, is served.
void say_elsewhere(const Session& active, const void* context) {
  static constinit std::atomic<bool> said{false};
  if (context == nullptr || said.load(std::memory_order_relaxed) ||
      said.exchange(true, std::memory_order_relaxed))
    return;
  log_info(
      "the program also allocates on another device or in another context than %s's primary one: "
      "that memory is the driver's, and is not moved",
      active.device.name);
}

void forward_after_sticky_error() {
  if (lost_to() != CUDA_ERROR_DEINITIALIZED) {
    statistics().set_reason(Reason::context_error);
    statistics().passed_through(PassThrough::context_error);
  }
  forward_from_now_on();
}

}  // namespace

Session::Session(const Device& device_found, const EngineConfig& engine_config, Policy& policy)
    : device(device_found),
      config(engine_config),
      port(device_found),
      engine(port, engine_config, policy, statistics()),
      graphs(engine),
      layouts(&ask_driver) {}

Status Session::open() {
  if (const Status status = port.open(); status != Status::kOk) return status;
  if (const Status status = engine.initialise(); status != Status::kOk) return status;
  CUmemoryPool current = nullptr;
  if (real<Entry::cuDeviceGetDefaultMemPool>()(&default_pool, device.device) != CUDA_SUCCESS)
    default_pool = nullptr;
  if (real<Entry::cuDeviceGetMemPool>()(&current, device.device) == CUDA_SUCCESS) {
    default_pool_is_current = current == default_pool;
  }
  const auto let_in = [](CUdevice peer, void* port_of) {
    static_cast<DriverPort*>(port_of)->set_peer(peer, true);
  };
  for_each_peer(device.context, let_in, &port);
  for_each_peer(default_pool, let_in, &port);
  // Now, and not when there is something to do: a thread that waits inside the engine for what the
  // worker does could not start it.
  worker.start(engine, port, device.context);
  return Status::kOk;
}

StreamIndex Session::find_stream(CUstream handle, bool even_foreign) {
  ThreadState& thread = this_thread;
  pins();  // adopts the thread, and with it its cache
  const uint64_t generation = stream_generation();
  const bool special = handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
  CUcontext context = nullptr;
  // What has no context will be refused by the driver. That may change, so it is not remembered.
  if (special) {
    context = current_context();
    if (context == nullptr) return kRefusedStream;
  } else if (real<Entry::cuStreamGetCtx>()(handle, &context) != CUDA_SUCCESS) {
    return kRefusedStream;
  }
  unsigned long long id = 0;
  if (real<Entry::cuStreamGetId>()(handle, &id) != CUDA_SUCCESS)
    id = reinterpret_cast<uintptr_t>(handle);
  StreamIndex index = kForeignStream;
  if (context == device.context || even_foreign) {
    index = engine.stream({handle, context}, id, handle == CU_STREAM_PER_THREAD);
    if (index == kNoStream) index = kUncountedStream;
    if (context != device.context)
      forget_streams();  // other threads know it as one to be left alone
  } else {
    index = engine.known_stream({handle, context}, id);
    static_assert(kForeignStream == kNoStream);
  }
  if (thread.stream_generation != generation) {
    for (ThreadState::CachedStream& cached : thread.streams) cached = {};
    thread.stream_generation = generation;
  }
  thread.streams[cache_slot(handle)] = {handle, index};
  return index;
}

void Session::adopt_thread() {
  ThreadState& thread = this_thread;
  if (thread.pins != nullptr) PinRegistry::give_back(thread.pins);
  thread.pins = engine.pin_registry().acquire();
  thread.owner = this;
  thread.stream_generation = 0;
  return_pins_at_thread_exit();
}

void Session::give_up(Reason reason, const char* sentence) {
  statistics().set_reason(reason);
  if (!config.move) return;
  engine.retire(sentence, pins());
}

Session* last_session() {
  return newest.load(std::memory_order_acquire);
}

bool allocations_seen() {
  return seen.load(std::memory_order_relaxed);
}

void note_allocation() {
  if (!seen.load(std::memory_order_relaxed)) seen.store(true, std::memory_order_relaxed);
}

NativeMemory* native_memory() {
  Session* active = session();
  return active != nullptr && active->native && active->device.context == current_context()
             ? &active->native_memory
             : nullptr;
}

Session* session_for_allocation() {
  note_allocation();
  if (this_thread.inside || forwarding.load(std::memory_order_relaxed)) return nullptr;
  if (++this_thread.allocations % kAllocationsBetweenChecks == 1) check_current_context();
  CUcontext context = current_context();
  if (Session* active = session(); active != nullptr) {
    if (active->device.context == context) return active;
    say_elsewhere(*active, context);
    return nullptr;
  }
  if (context == nullptr || refused_context.load(std::memory_order_relaxed) == context ||
      !driver_in_use())
    return nullptr;
  const NotCancelled not_cancelled;
  const std::lock_guard lock(making);
  Session* made = active_session.load(std::memory_order_acquire);
  if (made == nullptr) {
    const RelaxedCapture relaxed;
    this_thread.inside = true;
    made = make_session();
    this_thread.inside = false;
    if (made == nullptr) {
      refused_context.store(context, std::memory_order_relaxed);
      return nullptr;
    }
    made->earlier = newest.load(std::memory_order_relaxed);
    newest.store(made, std::memory_order_release);
    set_sticky_listener(&forward_after_sticky_error);
    end_session_at_exit();
    if (!forwarding.load(std::memory_order_relaxed)) {
      active_session.store(made, std::memory_order_release);
      catch_up(*made);
    }
  }
  return made->device.context == context ? made : nullptr;
}

CUresult answer_to_free(CUresult by_driver, CUdeviceptr address) {
  if (by_driver != CUDA_ERROR_INVALID_VALUE || !forwarding.load(std::memory_order_relaxed))
    return by_driver;
  for (const Session* known = last_session(); known != nullptr; known = known->earlier) {
    if (known->engine.owns(address)) return CUDA_SUCCESS;
  }
  return by_driver;
}

bool start_over_in_child() {
  if (last_session() != nullptr || forwarding.load(std::memory_order_relaxed)) return false;
  if (!making.try_lock()) return false;
  making.unlock();
  seen.store(false, std::memory_order_relaxed);
  return true;
}

void forward_from_now_on() {
  forwarding.store(true, std::memory_order_relaxed);
  active_session.store(nullptr, std::memory_order_release);
}

void a_context_died() {
  refused_context.store(nullptr, std::memory_order_relaxed);
}

void context_died(CUcontext context) {
  captured_context_died(context);
  Session* active = active_session.load(std::memory_order_acquire);
  if (active == nullptr) return;
  if (active->device.context != context) {
    forget_streams();
    active->engine.other_context_gone(context);
    return;
  }
  if (!active_session.compare_exchange_strong(active, nullptr, std::memory_order_acq_rel)) return;
  forget_streams();
  active->worker.stop();
  active->engine.context_gone();
  active->native_memory.forget();
  active->port.give_back_addresses();
}

void note_result(CUresult result) {
  if (is_sticky(result)) note_sticky(result);
}

}  // namespace offload
