// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/make_session.h"

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

#include "interpose/doors/environment.h"
#include "interpose/doors/substitute.h"
#include "interpose/doors/traps.h"
#include "interpose/driver/probe.h"
#include "interpose/driver/table.h"
#include "interpose/life/host_ledger.h"
#include "interpose/life/host_parts.h"
#include "interpose/life/pytorch.h"
#include "interpose/life/sessions.h"
#include "interpose/life/start.h"
#include "interpose/naming/ask_driver.h"
#include "profiler/base/host_memory.h"
#include "profiler/base/log.h"
#include "profiler/base/option_text.h"
#include "profiler/base/units.h"
#include "profiler/transfers.h"

namespace offload {
namespace {

// What the sessions of a process share. Whoever comes when none is left begins afresh.
struct Shared {
  GraphNames graphs;
  Layouts layouts{&ask_driver};
};
constinit Shared* shared = nullptr;

// What outlives the sessions of a device.
struct OfDevice {
  Statistics counts;
  HostPart host_part;
  PolicyStorage policy_storage;
};
alignas(OfDevice) constinit std::byte of_devices[kMostDevices][sizeof(OfDevice)]{};
constinit bool is_made[kMostDevices]{};
constinit HostParts host_parts{};

OfDevice& of_device(uint32_t ordinal) {
  void* at = of_devices[ordinal];
  if (is_made[ordinal]) return *std::launder(static_cast<OfDevice*>(at));
  is_made[ordinal] = true;
  OfDevice& made = *new (at) OfDevice();
  statistics().add_part(made.counts);
  return made;
}

// What all devices may pin together is decided once: what they have pinned is no longer free then.
void start_host_parts(uint64_t wanted_bytes, uint64_t headroom_bytes) {
  if (host_parts.started()) return;
  host_ledger().start(options().host_limit.is_part ? wanted_bytes
                                                   : std::max(wanted_bytes, headroom_bytes));
  int devices = 1;
  real<Entry::cuDeviceGetCount>()(&devices);
  host_parts.start(wanted_bytes, host_ledger(), static_cast<uint32_t>(std::max(devices, 1)));
}

// What keeps anything from being moved, as far as it is known now.
bool may_move(const Device& device, const Policy& policy) {
  const auto stays = [](Reason reason) {
    statistics().set_reason(reason);
    return false;
  };
  if (given_up()) return false;
  if (!policy.moves()) return stays(Reason::policy_none);
  if (!device.layouts) {
    statistics().passed_through(PassThrough::no_layouts);
    log_warn(
        "driver %d.%d does not tell what kernels take as arguments: nothing is moved; CUDA 12.4 or "
        "newer does",
        device.driver_version / 1000, device.driver_version % 1000 / 10);
    return stays(Reason::no_layouts);
  }
  if (is_native_pytorch()) {
    log_info(
        "PyTorch's own cache hides its tensors: the driver serves it and nothing is moved; leave "
        "its allocator settings to liboffload");
    return stays(Reason::native_allocator);
  }
  return true;
}

// OFFLOAD_MODE=observe: the program runs as it would, and the limit is only a question.
void observe(const Device& device, EngineConfig* config) {
  if (config->move) {
    statistics().set_reason(Reason::observing);
    config->rehearsed_limit_bytes = config->limit_bytes;
    config->rehearsed_host_limit_bytes = config->host_limit_bytes;
    config->move = false;
  }
  config->limit_bytes = device.free_bytes;
  config->host_limit_bytes = 0;
}

EvictedShows decide_evicted(const Device& device) {
  if (options().evicted == Evicted::kUnmapped) return EvictedShows::kNothing;
  const char* obstacle =
      device.host_memory ? probe_host_mapping(device) : "the device cannot map host memory";
  if (obstacle == nullptr) return EvictedShows::kHostCopy;
  const auto say = options().evicted == Evicted::kHost ? &log_warn : &log_info;
  say("%s: addresses of moved buffers show nothing (OFFLOAD_EVICTED=unmapped)", obstacle);
  return EvictedShows::kNothing;
}

EngineConfig make_config(const Device& device, bool move, HostPart& host_part) {
  const Options& wanted = options();
  EngineConfig config;
  config.granularity = device.granularity;
  config.device_bytes = device.total_bytes;
  config.limit_bytes = std::min(wanted.gpu_limit.of(device.total_bytes), device.free_bytes);
  if (move) {
    const uint64_t headroom = read_host_memory().headroom_bytes();
    start_host_parts(wanted.host_limit.of(headroom), headroom);
    host_parts.join(host_part, 2 * config.largest_extent_granules * config.granularity);
    config.host_limit_bytes = host_parts.limit_bytes();
    config.host_share = &host_part;
  }
  config.min_size_bytes =
      least_moved_bytes(wanted, wanted.gpu_limit.of(device.total_bytes), device.granularity);
  config.slot_chunk_bytes = wanted.slot_chunk_bytes;
  config.queue_depth = static_cast<uint32_t>(wanted.queue_depth);
  config.grace_ops = static_cast<uint32_t>(wanted.grace_operations);
  config.evicted =
      move && wanted.mode == Mode::kOffload ? decide_evicted(device) : EvictedShows::kNothing;
  config.move = move;
  config.finished_victims_only = wanted.victims == Victims::kFinished;
  config.verify = wanted.verify;
  config.free_is_fenced = is_pytorch() && pytorch_allocator() == PytorchAlloc::kUncached;
  if (wanted.mode == Mode::kObserve) observe(device, &config);
  return config;
}

// OFFLOAD_TRANSFERS: one line for each copy that has completed.
void record_transfer(const Transfer& done, void* session) {
  transfer_log().record({statistics().since_start_ns(done.submitted_ns),
                         done.lane == Lane::kOut ? Direction::kOut : Direction::kIn, done.buffer,
                         done.bytes, done.device_ns, done.op,
                         static_cast<const Session*>(session)->ordinal});
}

void say_start_line(const Session& session) {
  const ShortText limit = format_size(session.config.limit_bytes);
  const ShortText host = format_size(session.config.host_limit_bytes);
  log_info("version " OFFLOAD_VERSION
           ", %s, driver %d.%d: up to %s on the GPU, %s in host memory%s",
           session.device.name, session.device.driver_version / 1000,
           session.device.driver_version % 1000 / 10, limit.c_str(), host.c_str(),
           session.config.move ? "" : "; nothing is moved");
  if (is_pytorch()) {
    log_info("PyTorch's allocator is %s%s",
             words_of<PytorchAlloc>()[static_cast<size_t>(pytorch_allocator())].data(),
             completed_pytorch_variables()
                 ? ": backend:cudaMallocAsync was put before what the program set"
                 : "");
  }
  log_debug("%zu wrappers handed out so far, %zu traps hit", wrappers_handed_out(), traps_hit());
  if (!log_enabled(LogLevel::kInfo)) return;
  char values[1024];
  BufferSink said{std::span<char>(values)};
  write_option_values(options(), said.sink());
  log_info("options: %s", values);
}

}  // namespace

Session* make_session() {
  Device device;
  if (!query_current_device(&device)) {
    static constinit bool said = false;
    if (!std::exchange(said, true))
      log_info(
          "the program allocates in a context that is no device's primary one: that memory is "
          "the driver's, and is not moved");
    return nullptr;
  }
  if (!device.virtual_memory) {
    statistics().set_reason(Reason::no_device_support);
    log_info("%s cannot map memory as liboffload needs it: its memory is left alone", device.name);
    return nullptr;
  }
  const auto ordinal = static_cast<uint32_t>(device.device);
  if (ordinal >= kMostDevices) {
    log_info("%s is one of more devices than are managed: its memory is left alone", device.name);
    return nullptr;
  }
  if (first_session.load(std::memory_order_relaxed) == nullptr) shared = own_new<Shared>();
  OfDevice& own = of_device(ordinal);
  const uint64_t limit_bytes = options().gpu_limit.of(device.total_bytes);
  Policy& policy =
      make_policy(options().policy, policy_config(options(), limit_bytes, device.granularity),
                  own.policy_storage);
  const EngineConfig config = make_config(device, may_move(device, policy), own.host_part);
  auto* session = own_new<Session>(
      device, config, Session::Surroundings{shared->graphs, shared->layouts, own.counts, policy});
  session->native = is_native_pytorch();
  session->native_memory.limit(limit_bytes);
  if (session->open() != Status::kOk) {
    statistics().set_reason(Reason::no_device_support);
    return nullptr;
  }
  transfer_log().set_file(options().transfers.c_str());
  if (transfer_log().wanted()) session->engine.tell_transfers(&record_transfer, session);
  transfer_log().open();
  say_start_line(*session);
  return session;
}

}  // namespace offload
