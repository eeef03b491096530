// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/session.h"

#include "interpose/driver/errors.h"
#include "interpose/driver/peers.h"
#include "interpose/driver/table.h"
#include "interpose/rules.h"

namespace offload {

namespace {
// Whether the driver, which answered that when it was asked about a stream, is about to refuse what
// the stream is given, too.
bool will_refuse(CUresult answer) {
  switch (answer) {
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_DEINITIALIZED:
      return true;
    default:
      return is_sticky(answer);
  }
}
}  // namespace

Session::Session(const Device& device_found, const EngineConfig& engine_config,
                 const Surroundings& surroundings)
    : device(device_found),
      ordinal(static_cast<uint32_t>(device_found.device)),
      config(engine_config),
      counts(surroundings.counts),
      port(device_found),
      engine(port, engine_config, surroundings.policy, surroundings.counts),
      graphs(surroundings.graphs),
      layouts(surroundings.layouts),
      native_memory(surroundings.counts) {}

Status Session::open() {
  if (const Status status = port.open(); status != Status::kOk) return status;
  if (const Status status = engine.initialise(); status != Status::kOk) return status;
  CUmemoryPool current = nullptr;
  if (real<Entry::cuDeviceGetMemPool>()(&current, device.device) == CUDA_SUCCESS) {
    default_pool_is_current = current == device.default_pool;
  }
  const auto let_in = [](CUdevice peer, void* port_of) {
    static_cast<DriverPort*>(port_of)->set_peer(peer, true);
  };
  if (obeys(Rule::kEarlierPeersReach)) {
    for_each_peer(device.context, let_in, &port);
    for_each_peer(device.default_pool, let_in, &port);
  }
  // Now, and not when there is something to do: a thread that waits inside the engine for what the
  // worker does could not start it.
  worker.start(engine, port, device.context);
  return Status::kOk;
}

StreamIndex Session::find_stream(CUstream handle, bool even_foreign) {
  ThreadState::OfDevice& own = of_thread();
  const uint64_t generation = stream_generation();
  CUcontext context = nullptr;
  // What has no context will be refused by the driver. That may change, so it is not remembered.
  if (is_special(handle)) {
    context = obeys(Rule::kHandlesMeanContexts) ? current_context() : device.context;
    if (context == nullptr) return kRefusedStream;
  }
  const uintptr_t key = key_of(handle, context);
  ThreadState::CachedStream& cached = own.streams[cache_slot(key)];
  if (own.stream_generation == generation && cached.key == key &&
      (cached.index != kForeignStream || !even_foreign))
    return cached.index;
  if (!is_special(handle)) {
    const CUresult answer = real<Entry::cuStreamGetCtx>()(handle, &context);
    if (answer != CUDA_SUCCESS) return will_refuse(answer) ? kRefusedStream : kUncountedStream;
  }
  unsigned long long id = 0;
  if (real<Entry::cuStreamGetId>()(handle, &id) != CUDA_SUCCESS ||
      !obeys(Rule::kStreamsHaveNumbers))
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
  if (own.stream_generation != generation) {
    for (ThreadState::CachedStream& old : own.streams) old = {};
    own.stream_generation = generation;
  }
  cached = {key, index};
  return index;
}

void Session::adopt_thread() {
  ThreadState::OfDevice& own = this_thread.devices[ordinal];
  if (own.pins != nullptr) PinRegistry::give_back(own.pins);
  own.pins = engine.pin_registry().acquire();
  own.owner = this;
  own.stream_generation = 0;
  return_pins_at_thread_exit();
}

}  // namespace offload
