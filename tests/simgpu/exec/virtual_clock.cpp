// SPDX-License-Identifier: Apache-2.0
// Clock virtual: a discrete-event simulation of the devices under the program's real threads. Time
// is counted, not spent. Devices never run further than the moment at which the next call can come,
// but for threads that are blocked, so a program whose threads take turns gives the same times
// every time. (Threads that call at the same time come in the order in which the lock lets them
// in.)
#include <chrono>
#include <climits>

#include "tests/simgpu/driver/context.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/driver/thread_state.h"
#include "tests/simgpu/exec/costs.h"
#include "tests/simgpu/exec/engine.h"

namespace simgpu {

namespace {

constexpr auto kPoll = std::chrono::microseconds(200);
// A host function that takes longer in real time may be waiting for the program.
constexpr auto kLongFunction = std::chrono::milliseconds(50);
// A program that has not called for so long may be waiting for memory to change.
constexpr auto kSilence = std::chrono::seconds(2);

int64_t ready_ns(const Stream& stream) {
  return std::max(stream.queue.front()->submit_ns, stream.time_ns);
}

}  // namespace

void Engine::enter_call(Lock& lock, const char* api) {
  if (!virtual_) return;
  ThreadState& me = thread_state();
  const CallCost& cost = call_cost(api);
  me.time_ns = std::max({me.time_ns, host_ns_, driver_free_ns_}) + cost.ns;
  if (cost.keeps_driver) driver_free_ns_ = me.time_ns;
  catch_up(lock, me.time_ns);
}

void Engine::leave_call(Lock&) {
  if (virtual_) host_ns_ = std::max(host_ns_, thread_state().time_ns);
}

void Engine::spend(int64_t ns) {
  if (virtual_) thread_state().time_ns += ns;
}

void Engine::spend_keeping_driver(int64_t ns) {
  spend(ns);
  driver_free_ns_ = std::max(driver_free_ns_, thread_state().time_ns);
}

void Engine::wait_as_pinning_does(Lock& lock, const char* call) {
  const PinningWaits waits = options().pinning_waits;
  if (waits == PinningWaits::kNever) return;
  if (waits == PinningWaits::kOnTimedClocks && !timeline_.timed()) return;
  std::vector<Target> targets;
  for (Stream* stream : streams_) targets.push_back({stream, stream->submitted});
  wait(lock, targets, call);
}

void Engine::note_reached(const std::vector<Target>& targets) {
  if (!virtual_) return;
  int64_t& mine = thread_state().time_ns;
  for (const Target& target : targets) {
    if (target.stream->completed == target.number) mine = std::max(mine, target.stream->time_ns);
  }
}

int64_t Engine::next_event_ns() const {
  if (waits_for_host_function() || effect_runs_) return device_ns_;
  const int64_t end = timeline_.next_end_ns();
  int64_t next = end < 0 ? INT64_MAX : end;
  for (const Stream* stream : active_) {
    if (stream->running || !stream->queue.front()->ready()) continue;
    const Resource resource = stream->queue.front()->cost().resource;
    if (resource != Resource::kNone && !timeline_.is_free(resource, stream->device)) continue;
    next = std::min(next, std::max(device_ns_, ready_ns(*stream)));
  }
  return next;
}

int64_t Engine::horizon_ns() const {
  return scheduler_.has_unmet() ? INT64_MAX - 1 : std::max(host_ns_, entered_ns_);
}

void Engine::catch_up(Lock& lock, int64_t ns) {
  entered_ns_ = std::max(entered_ns_, ns);
  if (active_.empty() || next_event_ns() > ns) return;
  ++catching_up_;
  Watch watch;
  while (next_event_ns() <= ns) {
    work_.notify_one();
    done_.wait_for(lock, std::chrono::seconds(1));
    check_watchdog(watch, "the virtual clock");
  }
  --catching_up_;
}

bool Engine::execute_virtual(Lock& lock) {
  if (waits_for_host_function()) return false;
  const auto run = [&](Stream& stream) {
    effect_runs_ = true;
    run_effect(lock, stream);
    effect_runs_ = false;
  };
  if (Stream* stream = timeline_.take_finished(device_ns_)) {
    if (!stream->queue.front()->effect_first()) run(*stream);
    complete(*stream);
    return true;
  }
  // What occupies nothing comes first, for it may let something of a higher priority go.
  Stream* best = nullptr;
  const auto key = [](const Stream& stream) {
    const Op& head = *stream.queue.front();
    const bool occupies = head.cost().resource != Resource::kNone;
    return std::make_tuple(occupies, occupies ? stream.priority : 0, ready_ns(stream), head.order);
  };
  for (Stream* stream : active_) {
    if (stream->running || !stream->queue.front()->ready()) continue;
    if (ready_ns(*stream) > device_ns_) continue;
    const Resource resource = stream->queue.front()->cost().resource;
    if (resource != Resource::kNone && !timeline_.is_free(resource, stream->device)) continue;
    if (best == nullptr || key(*stream) < key(*best)) best = stream;
  }
  if (best != nullptr) {
    Op& op = *best->queue.front();
    best->running = true;
    if (op.on_host()) {
      if (!host_function_runs_) host_function_since_ns_ = Timeline::wall_ns();
      host_function_runs_ = true;
      host_queue_.push_back(best);
      host_work_.notify_one();
    } else if (op.cost().resource != Resource::kNone) {
      if (op.effect_first()) run(*best);
      timeline_.start(best, op.cost(), device_ns_);
    } else {
      run(*best);
      complete(*best);
    }
    return true;
  }
  const int64_t next = next_event_ns();
  if (next == INT64_MAX || next > horizon_ns()) return false;
  device_ns_ = std::max(device_ns_, next);
  return true;
}

// Nothing may happen now. Threads that wait for that go on; the devices wait for a call, for a host
// function, or for memory to change.
void Engine::sleep_virtual(Lock& lock, uint64_t calls, bool* silent) {
  if (waits_for_host_function()) {
    // By the clock, for whoever waits for the devices wakes this thread again and again.
    const auto left =
        kLongFunction - std::chrono::nanoseconds(Timeline::wall_ns() - host_function_since_ns_);
    if (left.count() <= 0) {
      host_function_is_long_ = true;
    } else {
      work_.wait_for(lock, left);
    }
    return;
  }
  if (catching_up_ > 0) done_.notify_all();
  const bool polls = std::any_of(active_.begin(), active_.end(), [](const Stream* stream) {
    return !stream->running && stream->queue.front()->polls();
  });
  if (active_.empty()) {
    wake_on_submit_ = true;  // the silence of the program counts from the first submission on
    work_.wait(lock);
    wake_on_submit_ = false;
    return;
  }
  if (polls) {
    work_.wait_for(lock, kPoll);
    // What the host has written by now it has written by its own time.
    if (!scheduler_.has_unmet()) device_ns_ = std::max(device_ns_, host_ns_);
    return;
  }
  const bool timeout = work_.wait_for(lock, kSilence) == std::cv_status::timeout;
  const uint64_t now = api_calls_.load(std::memory_order_relaxed);
  if (!timeout || calls != now) return;
  const int64_t next = next_event_ns();
  if (next != INT64_MAX && next > horizon_ns()) host_ns_ = std::max(host_ns_, next);
  *silent = true;
}

void Engine::finish_host_function(Stream&) {
  host_function_runs_ = !host_queue_.empty();
  host_function_is_long_ = false;
  host_function_since_ns_ = Timeline::wall_ns();  // of the next one
}

std::map<uint64_t, int64_t> Engine::stream_busy_ns() const {
  std::map<uint64_t, int64_t> busy = busy_before_;
  for (const Stream* stream : streams_) {
    if (stream->busy_ns != 0) busy[stream->id] = stream->busy_ns;
  }
  return busy;
}

}  // namespace simgpu
