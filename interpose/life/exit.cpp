// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/exit.h"

#include <errno.h>
#include <stdlib.h>

#include <atomic>

#include "interpose/life/fork.h"
#include "interpose/life/session.h"
#include "interpose/life/start.h"
#include "profiler/report.h"

namespace offload {
namespace {

constinit std::atomic<bool> written{false};

void write_summary(const Session* last) {
  if (is_forked_child() || options().report == offload::Report::kOff) return;
  if (written.exchange(true, std::memory_order_acq_rel)) return;
  ReportFacts facts;
  facts.version = OFFLOAD_VERSION;
  facts.program = program_invocation_short_name;
  facts.mode = options().mode;
  facts.policy = options().policy;
  facts.evicted = options().evicted;
  if (last != nullptr) {
    facts.device = last->device.name;
    facts.device_total_bytes = last->device.total_bytes;
    facts.gpu_limit_bytes = last->config.limit_bytes;
    facts.host_limit_bytes = last->config.host_limit_bytes;
    facts.evicted =
        last->config.evicted == EvictedShows::kHostCopy ? Evicted::kHost : Evicted::kUnmapped;
  }
  Snapshot snapshot{};
  statistics().read(snapshot);
  write_report(options(), facts, snapshot);
}

// A worker process that only loaded a library which looks for the driver has nothing to say.
void end_of_process_without_session() {
  if (!options().disable && !allocations_seen()) return;
  if (statistics().allocations.get() == 0) statistics().set_reason(Reason::no_allocations);
  write_summary(last_session());
}

void end_of_session() {
  Session* last = last_session();
  if (is_forked_child() || last == nullptr) return;
  const bool working = active_session.load(std::memory_order_acquire) == last;
  forward_from_now_on();
  last->worker.stop();
  if (working) last->engine.collect();
  write_summary(last);
}

}  // namespace

void report_at_exit() {
  atexit(&end_of_process_without_session);
}

void end_session_at_exit() {
  atexit(&end_of_session);
}

}  // namespace offload
