// SPDX-License-Identifier: Apache-2.0
#pragma once
// The modelled GPU: memory, queues of work, events. Nothing takes effect when it is submitted, only
// when the schedule lets the head of a queue run. One host thread at a time.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/engine/model/memory.h"

namespace offload::model {

struct Queue;

// By queue: ordered behind so many of its items.
using Clock = std::vector<uint32_t>;

// One record of an event. What was recorded later into the same event is another one.
struct Mark {
  Queue* queue = nullptr;
  bool done = false;
  uint64_t time = 0;
  uint32_t number = 0;  // of the item that records it, in its queue
  Clock after;          // what it stands for
};

struct Touch {
  Address at;
  uint64_t bytes;
  bool writes;
};

struct Item {
  std::function<void()> run;        // kernels and copies
  std::shared_ptr<Mark> records;    // an event
  std::shared_ptr<Mark> waits_for;  // an event
  int flag = -1;                    // what the host will set
  // For who explores: what `run` will do, and behind what.
  uint64_t token = 0;
  std::vector<Touch> touches = {};
  Clock after = {};
};

struct Queue {
  std::string name;
  bool is_lane = false;
  bool captures = false;  // nothing of the engine's may come here
  std::deque<Item> items;
  size_t index = 0;        // in the order of their birth
  uint32_t submitted = 0;  // items, so far
  Clock clock;             // of the last one
};

class Device;

// Who runs next. The device asks it at every call of the host, and while the host waits.
class Schedule {
 public:
  enum class Point : uint8_t {
    kStep,    // between two calls of the program
    kUnmap,   // an address is about to show nothing
    kQuery,   // the host asks whether an event has passed
    kSubmit,  // something was queued
    kOther,
  };
  virtual ~Schedule() = default;
  // The GPU may go on while the host does.
  virtual void at(Point, Device&) {}
  // The host waits: which of the queues whose head can run. `ready` is never empty.
  virtual size_t pick(Device& device, const std::vector<Queue*>& ready) = 0;
  // While the host waits, only what it waits for runs.
  virtual bool lazy() const { return false; }
};

class Device {
 public:
  Device(uint64_t bytes, Schedule& schedule) : memory_(bytes), schedule_(schedule) {}

  Memory& memory() { return memory_; }
  Schedule& schedule() { return schedule_; }
  Queue* add_queue(std::string name, bool is_lane);

  void submit(Queue& queue, Item item);
  void set_flag(int flag);
  bool can_run(const Queue& queue) const;
  // Runs the head, which can run.
  void run_head(Queue& queue);
  // Heads that can run, in the order of the queues' birth.
  const std::vector<Queue*>& ready();
  // Runs what the schedule picks until the mark is done; false: nothing can run.
  bool run_until(const std::shared_ptr<Mark>& mark);
  // Everything; what stands behind a flag stays.
  void run_all();
  // Everything that one queue needs to become empty.
  void drain(Queue& queue);
  // Work that never ran is dropped: the context died.
  void forget_work();
  // Whether queued work goes through these addresses.
  bool uses(Address at, uint64_t bytes) const;
  std::string dump() const;
  const std::vector<std::unique_ptr<Queue>>& queues() const { return queues_; }
  bool flag_set(int flag) const {
    return static_cast<size_t>(flag) < flags_.size() && flags_[static_cast<size_t>(flag)];
  }
  bool keep_clocks = false;  // items know what they are ordered behind
  uint64_t time() const { return time_; }
  uint64_t tick() { return ++time_; }

 private:
  bool force(const Mark& mark);

  Memory memory_;
  Schedule& schedule_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::vector<Queue*> ready_;
  std::vector<bool> flags_;
  uint64_t time_ = 0;
};

}  // namespace offload::model
