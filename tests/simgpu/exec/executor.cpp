// SPDX-License-Identifier: Apache-2.0
// The threads that run operations: the executor and the host-function thread.
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "tests/simgpu/driver/context.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/driver/say.h"
#include "tests/simgpu/exec/engine.h"
#include "tests/simgpu/exec/fault.h"

namespace simgpu {

namespace {

constexpr auto kSilence = std::chrono::milliseconds(20);
constexpr auto kRest = std::chrono::microseconds(200);

// The program's signals are none of these threads' business; faults must still be caught.
void block_signals() {
  sigset_t set;
  sigfillset(&set);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&set, fault);
  pthread_sigmask(SIG_SETMASK, &set, nullptr);
}

}  // namespace

void Engine::start_threads() {
  threads_started_ = true;
  install_fault_handler();
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([this] { executor_main(); }).detach();
  std::thread([this] { host_function_main(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Engine::executor_main() {
  block_signals();
  pthread_setname_np(pthread_self(), "simgpu-exec");
  Lock lock(driver_mutex());
  uint64_t calls_seen = 0;
  bool silent = false;
  for (;;) {
    const uint64_t calls = api_calls_.load(std::memory_order_relaxed);
    if (calls != calls_seen) scheduler_.set_program_silent(false);
    if (virtual_) {
      if (!execute_virtual(lock)) sleep_virtual(lock, calls, &silent);
      continue;
    }
    const bool rest = blocked_hosts_ == 0 && !active_.empty() && scheduler_.wants_a_rest();
    if (!rest && execute_one(lock)) continue;
    // Lazily scheduled work, once there is any, runs for other reasons than being submitted.
    wake_on_submit_ = !rest && (!scheduler_.late() || active_.empty());
    const int64_t next_end = timeline_.next_end_ns();
    if (next_end >= 0) {
      const auto left = std::chrono::nanoseconds(next_end - Timeline::wall_ns());
      work_.wait_for(lock, std::max(left, std::chrono::nanoseconds(0)));
    } else if (rest) {
      work_.wait_for(lock, kRest);
    } else if (scheduler_.late() && !active_.empty()) {
      const bool timeout = work_.wait_for(lock, kSilence) == std::cv_status::timeout;
      calls_seen = api_calls_.load(std::memory_order_relaxed);
      scheduler_.set_program_silent(timeout && calls == calls_seen);
    } else if (polling_ != 0 && !active_.empty()) {
      work_.wait_for(lock, kRest);  // a head waits for memory that the outside world changes
    } else {
      work_.wait(lock);
    }
    wake_on_submit_ = false;
  }
}

bool Engine::execute_one(Lock& lock) {
  if (timeline_.timed()) {
    if (Stream* stream = timeline_.take_finished(Timeline::wall_ns())) {
      if (!stream->queue.front()->effect_first()) run_effect(lock, *stream);
      complete(*stream);
      return true;
    }
  }
  polling_ = 0;
  Stream* stream = scheduler_.pick(active_, [this](const Op& op) {
    return !timeline_.timed() || op.cost().resource == Resource::kNone ||
           timeline_.is_free(op.cost().resource);
  });
  if (stream == nullptr) {
    for (const Stream* waiting : active_) {
      if (!waiting->running && waiting->queue.front()->polls()) ++polling_;
    }
    return false;
  }
  Op& op = *stream->queue.front();
  stream->running = true;
  if (op.on_host()) {
    host_queue_.push_back(stream);
    host_work_.notify_one();
    return true;
  }
  if (timeline_.timed() && op.cost().resource != Resource::kNone) {
    const int64_t begin = Timeline::wall_ns();
    if (op.effect_first()) run_effect(lock, *stream);
    timeline_.start(stream, op.cost(), begin);
    return true;
  }
  run_effect(lock, *stream);
  complete(*stream);
  return true;
}

void Engine::run_effect(Lock& lock, Stream& stream) {
  Op& op = *stream.queue.front();
  if (options().check != CheckMode::kOff) {
    if (op.known != nullptr && op.known != stream.last_known) {
      stream.clock.join(*op.known);
      stream.last_known = op.known;
    }
    stream.clock.raise(stream.agent, op.number);
  }
  if (op.touches_memory() && stream.context->sticky != CUDA_SUCCESS) return;
  op.run(lock);
}

void Engine::complete(Stream& stream) {
  // The destructor may free much (staged data): let the queue go on first.
  const std::unique_ptr<Op> finished = std::move(stream.queue.front());
  stream.queue.pop_front();
  stream.completed = finished->number;
  stream.running = false;
  if (stream.queue.empty()) std::erase(active_, &stream);
  ++progress_;
  stream.time_ns = device_ns_;
  if (blocked_hosts_ > 0 && scheduler_.note_progress(stream, device_ns_)) done_.notify_all();
}

void Engine::host_function_main() {
  block_signals();
  pthread_setname_np(pthread_self(), "simgpu-host");
  Lock lock(driver_mutex());
  for (;;) {
    host_work_.wait(lock, [this] { return !host_queue_.empty(); });
    Stream* stream = host_queue_.front();
    host_queue_.pop_front();
    run_effect(lock, *stream);
    if (virtual_) finish_host_function(*stream);
    complete(*stream);
    work_.notify_one();
  }
}

void RecordOp::run(Lock&) {
  record->done = true;
  record->time_ns = engine().now_ns();
  record->clock = stream->clock;
}

void WaitOp::run(Lock&) {
  stream->clock.join(record->clock);
}

void Engine::check_watchdog(Watch& watch, const char* call) {
  const int64_t now = Timeline::wall_ns();
  if (watch.since_ns == 0 || watch.progress != progress_) {
    watch.progress = progress_;
    watch.since_ns = now;
    return;
  }
  if (now - watch.since_ns < options().watchdog_s * int64_t{1000000000}) return;
  say("no operation has finished for %d s while %s waits; the streams:", options().watchdog_s,
      call);
  print_streams();
  std::abort();
}

void Engine::print_streams() {
  for (const Stream* stream : active_) {
    const Op& head = *stream->queue.front();
    std::string what = head.describe();
    if (stream->running) {
      what += " (running)";
    } else if (const Record* record = head.waits_for()) {
      if (!record->done && record->stream != nullptr) {
        what += ", which waits for operation " + std::to_string(record->number) + " of stream " +
                std::to_string(record->stream->id);
      }
    } else if (!head.ready()) {
      what += " (its condition does not hold)";
    }
    say("  stream %llu: %zu operations queued, the head is #%llu %s",
        static_cast<unsigned long long>(stream->id), stream->queue.size(),
        static_cast<unsigned long long>(head.number), what.c_str());
  }
}

}  // namespace simgpu
