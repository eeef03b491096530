// SPDX-License-Identifier: Apache-2.0
#pragma once
// An event that several processes know (CU_EVENT_INTERPROCESS): two numbers in shared memory say
// how often it was recorded, and which record is done. The checker does not see across processes.

#include <atomic>
#include <cstdint>
#include <memory>

#include "tests/simgpu/exec/op.h"

namespace simgpu {

class SharedEvent {
 public:
  // A new one, or that of another process, whose descriptor `fd` is there. Null: not possible.
  static std::shared_ptr<SharedEvent> create();
  static std::shared_ptr<SharedEvent> open(int process, int fd);
  ~SharedEvent();
  SharedEvent(const SharedEvent&) = delete;
  SharedEvent& operator=(const SharedEvent&) = delete;

  int fd() const { return fd_; }
  uint64_t recorded() const { return words_[0].load(); }
  uint64_t record() { return words_[0].fetch_add(1) + 1; }
  bool is_done(uint64_t number) const { return words_[1].load() >= number; }
  void finish(uint64_t number);

 private:
  SharedEvent(int fd, std::atomic<uint64_t>* words) : fd_(fd), words_(words) {}
  static std::shared_ptr<SharedEvent> map(int fd);
  int fd_;
  std::atomic<uint64_t>* words_;
};

// The end of a record, for other processes.
class SharedSignalOp : public Op {
 public:
  SharedSignalOp(std::shared_ptr<SharedEvent> event, uint64_t which)
      : event_(std::move(event)), which_(which) {}
  void run(Lock&) override { event_->finish(which_); }
  bool touches_memory() const override { return false; }
  std::string describe() const override { return "record of an event of several processes"; }

 private:
  std::shared_ptr<SharedEvent> event_;
  uint64_t which_;
};

class SharedWaitOp : public Op {
 public:
  SharedWaitOp(std::shared_ptr<SharedEvent> event, uint64_t which)
      : event_(std::move(event)), which_(which) {}
  bool ready() const override { return event_->is_done(which_); }
  bool polls() const override { return true; }
  void run(Lock&) override {}
  bool touches_memory() const override { return false; }
  std::string describe() const override { return "wait for an event of another process"; }

 private:
  std::shared_ptr<SharedEvent> event_;
  uint64_t which_;
};

}  // namespace simgpu
