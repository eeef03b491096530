// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/exit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "interpose/doors/libcuda.h"
#include "interpose/driver/errors.h"
#include "interpose/driver/table.h"
#include "interpose/life/fork.h"
#include "interpose/life/heap.h"
#include "interpose/life/sessions.h"
#include "interpose/life/start.h"
#include "profiler/base/log.h"
#include "profiler/report.h"

namespace offload {
namespace {

constinit std::atomic<bool> written{false};
constinit std::atomic<bool> registered{false};

uint64_t gpu_limit_of(const Session& session) {
  return session.config.rehearsed_limit_bytes != 0 ? session.config.rehearsed_limit_bytes
                                                   : session.config.limit_bytes;
}

// Of each device its last session, by ordinal.
struct AllDevices {
  explicit AllDevices(const Session* last) {
    const Session* of[kMostDevices] = {};
    for (; last != nullptr; last = last->earlier) {
      if (of[last->ordinal] == nullptr) of[last->ordinal] = last;
    }
    for (const Session* each : of) {
      if (each == nullptr) continue;
      each->counts.read(counts[count]);
      facts[count] = {each->ordinal, each->device.name, each->device.total_bytes,
                      gpu_limit_of(*each), &counts[count]};
      ++count;
    }
  }
  DeviceFacts facts[kMostDevices];
  Snapshot counts[kMostDevices];
  size_t count = 0;
};

void write_summary(const Session* last, std::string_view incomplete = {}) {
  if (is_forked_child() || options().report == offload::Report::kOff) return;
  if (written.exchange(true, std::memory_order_acq_rel)) return;
  ReportFacts facts;
  facts.version = OFFLOAD_VERSION;
  facts.program = program_invocation_short_name;
  facts.mode = options().mode;
  facts.policy = options().policy;
  facts.evicted = options().evicted;
  facts.incomplete = incomplete;
  facts.own_memory_bytes = own_bytes_in_use();
  const AllDevices& devices = *own_new<AllDevices>(last);  // large, and needed to the end
  facts.devices = {devices.facts, devices.count};
  if (last != nullptr) {
    facts.device = devices.facts[0].name;
    facts.device_total_bytes = devices.facts[0].total_bytes;
    facts.gpu_limit_bytes = devices.facts[0].limit_bytes;
    facts.host_limit_bytes = last->config.rehearsed_limit_bytes != 0
                                 ? last->config.rehearsed_host_limit_bytes
                                 : last->config.host_limit_bytes;
    facts.evicted =
        last->config.evicted == EvictedShows::kHostCopy ? Evicted::kHost : Evicted::kUnmapped;
  }
  Snapshot snapshot{};
  statistics().read(snapshot);
  write_report(options(), facts, snapshot);
}

// Whether a device has its primary context.
bool device_in_use() {
  unsigned flags = 0;
  int active = 0;
  for (CUdevice device = 0;; ++device) {
    if (real<Entry::cuDevicePrimaryCtxGetState>()(device, &flags, &active) != CUDA_SUCCESS)
      return false;
    if (active != 0) return true;
  }
}

// A worker process that only loaded a library which looks for the driver has nothing to say.
void end_of_process_without_session() {
  if (is_forked_child() || options().report == offload::Report::kOff) return;
  if (!options().disable && !allocations_seen() && !device_in_use()) return;
  if (statistics().sum(&Statistics::allocations) == 0)
    statistics().set_reason(Reason::no_allocations);
  write_summary(last_session());
}

// A thread that is in the engine for so long is this one, interrupted by the signal whose handler
// ends the process.
bool collect_soon(Engine& engine) {
  constexpr int kMostLooks = 100;
  for (int look = 0; look < kMostLooks; ++look) {
    if (engine.try_collect()) return true;
    constexpr timespec kMoment{0, 1'000'000};
    nanosleep(&kMoment, nullptr);
  }
  return false;
}

bool is_at_work(const Session& session) {
  for (const Session* each = first_session.load(std::memory_order_acquire); each != nullptr;
       each = next_of(*each)) {
    if (each == &session) return true;
  }
  return false;
}

Worker::Counted count_the_rest(Session& last) {
  if (last.worker.started()) return last.worker.stop_and_count();
  return collect_soon(last.engine) ? Worker::Counted::kAll : Worker::Counted::kNever;
}

// The least that was counted on any device.
Worker::Counted stop_all() {
  Worker::Counted least = Worker::Counted::kAll;
  for (Session* each = last_session(); each != nullptr; each = each->earlier) {
    if (!is_at_work(*each) || context_lost()) {
      each->worker.stop();
      if (each->worker.has_ended_uncounted()) least = std::max(least, Worker::Counted::kSome);
    } else {
      least = std::max(least, count_the_rest(*each));
    }
  }
  return least;
}

void end_of_sessions() {
  Session* last = last_session();
  if (is_forked_child() || last == nullptr) return;
  expect_the_end();
  const Worker::Counted counted = stop_all();
  // Whoever comes after us would wait for ever.
  if (counted == Worker::Counted::kNever) forward_from_now_on();
  const bool lost = context_lost() && lost_to() != CUDA_ERROR_DEINITIALIZED;
  write_summary(last, lost ? "the context was lost, and what moved just before may not be counted"
                      : counted == Worker::Counted::kNever
                          ? "the program ended in the middle of a call"
                      : counted == Worker::Counted::kSome
                          ? "copies were under way when the program, or a context of its own, ended"
                          : "");
}

// Whether the parent has this library, too. Unreadable: no.
bool preloaded_in_parent() {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/maps", static_cast<int>(getppid()));
  const int maps = open(path, O_RDONLY | O_CLOEXEC);
  if (maps < 0) return false;
  constexpr std::string_view kName = "/liboffload";
  char text[4096];
  size_t kept = 0;  // of the last piece: the name may lie across two
  bool found = false;
  for (ssize_t got = 0; !found && (got = read(maps, text + kept, sizeof text - kept)) > 0;) {
    const size_t size = kept + static_cast<size_t>(got);
    found = memmem(text, size, kName.data(), kName.size()) != nullptr;
    kept = std::min(size, kName.size() - 1);
    std::memmove(text, text + size - kept, kept);
  }
  close(maps);
  return found;
}

constinit pid_t loaded_in = 0;

void end_without_driver() {
  if (driver_was_met() || getpid() != loaded_in || preloaded_in_parent()) return;
  start_to_speak();
  const bool wanted = options().report != Report::kOff;
  if (!wanted) {
    log_info(libcuda_is_loaded() ? "%s reached the CUDA driver past liboffload, which does nothing"
                                 : "%s used no CUDA driver: liboffload did nothing",
             program_invocation_short_name);
    return;
  }
  if (libcuda_is_loaded()) {
    log_warn(
        "%s reached the CUDA driver past liboffload, which moved nothing: there is no summary "
        "(does "
        "a library preloaded in front of it look names up, too?)",
        program_invocation_short_name);
    return;
  }
  log_warn("%s used no CUDA driver: there is no summary", program_invocation_short_name);
}

}  // namespace

void speak_at_exit_without_driver() {
  loaded_in = getpid();
  atexit(&end_without_driver);
}

void report_at_exit() {
  atexit(&end_of_process_without_session);
}

void end_session_at_exit() {
  if (!registered.exchange(true, std::memory_order_relaxed)) atexit(&end_of_sessions);
}

}  // namespace offload
