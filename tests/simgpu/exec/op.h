// SPDX-License-Identifier: Apache-2.0
#pragma once
// One operation of a stream. Made by an API call, owned by its stream's queue, run once by the
// executor (or by the host-function thread), destroyed afterwards. Everything it needs was copied
// when it was submitted.

#include <cstdint>
#include <memory>
#include <string>

#include "tests/simgpu/check/vector_clock.h"
#include "tests/simgpu/driver/lock.h"
#include "tests/simgpu/exec/record.h"

namespace simgpu {

struct Stream;

// What an operation occupies while it runs on a clock with time.
enum class Resource : uint8_t { kNone, kCompute, kHostToDevice, kDeviceToHost };

struct Cost {
  Resource resource = Resource::kNone;
  double bytes = 0;    // for the links
  double seconds = 0;  // for compute
};

class Op {
 public:
  virtual ~Op() = default;

  // Under the lock: may it run now, if it is the head of its stream? If not, the point that it
  // waits for, or null if it is the outside world that it waits for.
  virtual bool ready() const { return true; }
  virtual const Record* waits_for() const { return nullptr; }
  // It waits for memory that others write.
  virtual bool polls() const { return false; }
  virtual Cost cost() const { return {}; }
  // On a clock with time: takes effect at its start, and only then knows its cost (else at its
  // end).
  virtual bool effect_first() const { return false; }
  // It has its place in its stream: `stream` and `number` are set.
  virtual void submitted() {}
  // Takes effect. Enters and leaves with the lock held; long work drops it.
  virtual void run(Lock& lock) = 0;
  // A host function: its effect happens on the host-function thread.
  virtual bool on_host() const { return false; }
  // True: it touches memory, so a faulted context skips it.
  virtual bool touches_memory() const { return true; }
  virtual std::string describe() const = 0;

  Stream* stream = nullptr;
  uint64_t number = 0;    // in its stream, from 1
  uint64_t order = 0;     // among all submissions
  int64_t submit_ns = 0;  // clock virtual: when
  ClockRef known;         // what the submitting thread knew to be finished
};

// A point that events and waits refer to.
class RecordOp : public Op {
 public:
  explicit RecordOp(RecordRef point) : record(std::move(point)) {}
  void run(Lock& lock) override;
  bool touches_memory() const override { return false; }
  std::string describe() const override { return "event record"; }
  RecordRef record;
};

class WaitOp : public Op {
 public:
  explicit WaitOp(RecordRef point) : record(std::move(point)) {}
  bool ready() const override { return record->done; }
  const Record* waits_for() const override { return record.get(); }
  void run(Lock& lock) override;
  bool touches_memory() const override { return false; }
  std::string describe() const override { return "wait for an event"; }
  RecordRef record;
};

}  // namespace simgpu
