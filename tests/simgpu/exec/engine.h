// SPDX-License-Identifier: Apache-2.0
#pragma once
// Streams, their queues, and the threads that run them. Host threads submit and wait; one executor
// thread, started at the first submission, picks ready operations as the schedule says. All
// functions that take a Lock want the driver's lock held.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/simgpu/exec/host_knowledge.h"
#include "tests/simgpu/exec/scheduler.h"
#include "tests/simgpu/exec/stream.h"
#include "tests/simgpu/exec/timeline.h"

namespace simgpu {

class Engine {
 public:
  Engine();

  Stream* create_stream(Lock&, Context*, unsigned flags, int priority);
  // Work that is queued still runs.
  void retire_stream(Lock&, Stream*);

  // Appends to the stream, after what the default stream's rule demands; blocks while the queue is
  // full. Returns the operation's number.
  uint64_t submit(Lock&, Stream&, std::unique_ptr<Op>);
  // The two halves of it: blocks until the queue has room; appends however full it is, for what
  // must come in one piece.
  void make_room(Lock&, Stream&);
  uint64_t add(Lock&, Stream&, std::unique_ptr<Op>);
  RecordRef add_point(Lock&, Stream&);
  // A point after everything submitted to the stream so far (and, on the default stream, to all
  // blocking ones).
  RecordRef record(Lock&, Stream&);
  // All that the context's streams, and those still to come, are given waits for it.
  void hold_back(Lock&, Context&, const RecordRef& record);
  // For the default stream: makes `submitted` stand for all blocking streams as well.
  void gather(Lock&, Stream&);

  // Blocks until all are reached.
  void wait(Lock&, const std::vector<Target>& targets, const char* call);
  // The same, and the calling thread then knows what was finished when each was reached.
  void synchronize(Lock&, const std::vector<Target>& targets, const char* call);
  void synchronize(Lock&, const Record& record, const char* call);
  // Not blocking: true if reached, and then the calling thread knows it. A query that fails again
  // and again makes a lazy schedule run what it asks for.
  bool query(Lock&, Target target);
  bool query(Lock&, const Record& record);

  // Raises the clock by what was finished when operation `number` of that agent was; it may say
  // more than that of other streams.
  void join_clock_at(VectorClock* clock, uint32_t agent, uint64_t number) const;

  // All that a synchronisation of a context, or of a device, waits for. A primary context's green
  // ones are part of it (cuda.h, cuCtxSynchronize).
  std::vector<Target> all_work(const Context* context);
  std::vector<Target> all_work_of_device(int device);

  // Clock virtual. A call begins when its thread and the last call that ended are that far, whoever
  // made it, and when no call keeps the driver's lock, and the devices are brought to the same
  // moment; it ends by its cost later. (Empty on the other clocks.)
  void enter_call(Lock&, const char* api);
  void leave_call(Lock&);
  // The calling thread is busy for so long.
  void spend(int64_t ns);
  // And every other thread's next call waits for it.
  void spend_keeping_driver(int64_t ns);
  // The calling thread waits for all that is queued on all devices, if SIMGPU_PINNING_WAITS says
  // so; it learns nothing from that.
  void wait_as_pinning_does(Lock&, const char* call);
  bool is_virtual() const { return virtual_; }
  // What the clock shows to operations that take effect now.
  int64_t now_ns() const { return virtual_ ? device_ns_ : Timeline::wall_ns(); }
  // For the report. Streams by their id.
  int64_t simulated_ns() const { return std::max(host_ns_, device_ns_); }
  const Timeline& timeline() const { return timeline_; }
  std::map<uint64_t, int64_t> stream_busy_ns() const;
  const std::map<std::string, int64_t>& waits_ns() const { return waits_ns_; }

  void note_api_call() { api_calls_.fetch_add(1, std::memory_order_relaxed); }
  HostKnowledge& knowledge() { return knowledge_; }
  uint64_t progress() const { return progress_; }
  // One line per busy stream: what its head is and what that waits for.
  void print_streams();
  void wake_executor() { work_.notify_one(); }

 private:
  VectorClock wait_and_look(Lock&, const std::vector<Target>& targets, const char* call);
  // The calling thread knows that operation to be finished.
  bool is_known(const Stream& stream, uint64_t number);
  VectorClock finished_clock(const Stream&) const;
  void append(Stream&, std::unique_ptr<Op>);
  RecordRef point_after(Stream&);
  void order_against_default(Stream&);
  void start_threads();
  void executor_main();
  bool execute_one(Lock&);
  bool execute_virtual(Lock&);
  // When something will happen if nothing else is submitted; INT64_MAX: nothing will.
  int64_t next_event_ns() const;
  // Until when devices may run ahead: a call that is still to come may submit work at that time.
  int64_t horizon_ns() const;
  void catch_up(Lock&, int64_t ns);
  void note_reached(const std::vector<Target>& targets);
  bool waits_for_host_function() const { return host_function_runs_ && !host_function_is_long_; }
  void sleep_virtual(Lock&, uint64_t calls, bool* silent);
  void run_effect(Lock&, Stream&);
  void complete(Stream&);
  void host_function_main();
  void finish_host_function(Stream&);

  struct Watch {
    uint64_t progress = 0;
    int64_t since_ns = 0;
  };
  // Aborts if nothing has finished for too long.
  void check_watchdog(Watch&, const char* call);

  std::condition_variable work_;       // for the executor
  std::condition_variable done_;       // for blocked host threads
  std::condition_variable host_work_;  // for the host-function thread
  int blocked_hosts_ = 0;
  bool threads_started_ = false;
  bool wake_on_submit_ = false;  // the executor sleeps, and new work is its business
  uint64_t next_order_ = 0;
  uint64_t next_stream_id_ = 0;
  uint64_t progress_ = 0;  // operations completed
  std::atomic<uint64_t> api_calls_{0};
  // Clock virtual.
  int64_t host_ns_ = 0;         // the end of the last call
  int64_t entered_ns_ = 0;      // the latest that a call has reached
  int64_t driver_free_ns_ = 0;  // until then some call keeps the driver's lock
  int64_t device_ns_ = 0;       // how far the devices are
  int catching_up_ = 0;         // threads that wait for that
  bool effect_runs_ = false;
  bool host_function_runs_ = false;
  bool host_function_is_long_ = false;       // too long to be waited for
  int64_t host_function_since_ns_ = 0;       // of real time
  std::map<uint64_t, int64_t> busy_before_;  // of streams that are no more
  std::map<std::string, int64_t> waits_ns_;

  size_t polling_ = 0;  // heads that wait for memory to change

  std::vector<Stream*> streams_;    // all that ever existed
  std::vector<Stream*> active_;     // those with a queue
  std::vector<Stream*> retired_;    // destroyed, may become usable again
  std::deque<Stream*> host_queue_;  // streams whose head is a host function that may run
  Scheduler scheduler_;
  bool virtual_;
  Timeline timeline_;
  HostKnowledge knowledge_;
};

Engine& engine();

}  // namespace simgpu
