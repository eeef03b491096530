// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/make_session.h"

#include <algorithm>

#include "interpose/doors/substitute.h"
#include "interpose/doors/traps.h"
#include "interpose/driver/probe.h"
#include "interpose/life/host_ledger.h"
#include "interpose/life/pytorch.h"
#include "interpose/life/session.h"
#include "interpose/life/start.h"
#include "profiler/base/host_memory.h"
#include "profiler/base/log.h"
#include "profiler/base/option_text.h"
#include "profiler/base/units.h"
#include "profiler/transfers.h"

namespace offload {
namespace {

constinit PolicyStorage policy_storage{};

// What keeps anything from being moved, as far as it is known now.
bool may_move(const Device& device, const Policy& policy) {
  const auto stays = [](Reason reason) {
    statistics().set_reason(reason);
    return false;
  };
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

EngineConfig make_config(const Device& device, bool move) {
  const Options& wanted = options();
  EngineConfig config;
  config.granularity = device.granularity;
  config.device_bytes = device.total_bytes;
  config.limit_bytes = std::min(wanted.gpu_limit.of(device.total_bytes), device.free_bytes);
  const uint64_t headroom = read_host_memory().headroom_bytes();
  config.host_limit_bytes = move ? wanted.host_limit.of(headroom) : 0;
  host_ledger().start(wanted.host_limit.is_part ? config.host_limit_bytes
                                                : std::max(config.host_limit_bytes, headroom));
  config.host_share = &host_ledger();
  config.min_size_bytes = wanted.min_size_bytes;
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
void record_transfer(const Transfer& done, void*) {
  transfer_log().record({statistics().since_start_ns(done.submitted_ns),
                         done.lane == Lane::kOut ? Direction::kOut : Direction::kIn, done.buffer,
                         done.bytes, done.device_ns, done.op});
}

void say_start_line(const Session& session) {
  const ShortText limit = format_size(session.config.limit_bytes);
  const ShortText host = format_size(session.config.host_limit_bytes);
  log_info("version " OFFLOAD_VERSION
           ", %s, driver %d.%d: up to %s on the GPU, %s in host memory%s",
           session.device.name, session.device.driver_version / 1000,
           session.device.driver_version % 1000 / 10, limit.c_str(), host.c_str(),
           session.config.move ? "" : "; nothing is moved");
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
    log_info("the current context is not a device's primary one: its memory is left alone");
    return nullptr;
  }
  if (!device.virtual_memory) {
    statistics().set_reason(Reason::no_device_support);
    log_info("%s cannot map memory as liboffload needs it: its memory is left alone", device.name);
    return nullptr;
  }
  Policy& policy = make_policy(options().policy, policy_config(options()), policy_storage);
  const EngineConfig config = make_config(device, may_move(device, policy));
  auto* session = own_new<Session>(device, config, policy);
  session->native = is_native_pytorch();
  session->native_memory.limit(options().gpu_limit.of(device.total_bytes));
  if (session->open() != Status::kOk) {
    statistics().set_reason(Reason::no_device_support);
    return nullptr;
  }
  transfer_log().set_file(options().transfers.c_str());
  if (transfer_log().wanted()) session->engine.tell_transfers(&record_transfer, nullptr);
  transfer_log().open();
  say_start_line(*session);
  return session;
}

}  // namespace offload
