// SPDX-License-Identifier: Apache-2.0
#pragma once
// Live statistics of one process, and of each device that it uses, from statistics.def. Updates are
// relaxed atomics on cache lines of their own: any thread, no lock on the launch path, no
// allocation. The one object lives for ever (constant-initialised, never destroyed), so that late
// threads and exit handlers may still count.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "profiler/top_buffers.h"

namespace offload {

inline constexpr std::size_t kCacheLine = 64;

enum class HostWait : std::uint8_t {
#define HOST_WAIT(name, sentence) name,
#include "profiler/statistics.def"
  count_
};

enum class PassThrough : std::uint8_t {
#define PASS_THROUGH(name, sentence) name,
#include "profiler/statistics.def"
  count_
};

enum class Reason : std::uint8_t {
#define REASON(name, sentence) name,
#include "profiler/statistics.def"
  count_
};

inline constexpr std::size_t kHostWaits = static_cast<std::size_t>(HostWait::count_);
inline constexpr std::size_t kPassThroughs = static_cast<std::size_t>(PassThrough::count_);

std::string_view name_of(HostWait cause);
std::string_view name_of(PassThrough cause);
std::string_view name_of(Reason reason);
std::string_view sentence_of(HostWait cause);
std::string_view sentence_of(PassThrough cause);
std::string_view sentence_of(Reason reason);

class alignas(kCacheLine) Counter {
 public:
  void add(std::uint64_t amount = 1) { value_.fetch_add(amount, std::memory_order_relaxed); }
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class alignas(kCacheLine) Gauge {
 public:
  // From now on `total` rises and falls with this one. Before the first add().
  void count_into(Gauge& total) { total_ = &total; }
  void count_alone() { total_ = nullptr; }
  // Returns true if this made a new peak.
  bool add(std::uint64_t amount) {
    if (total_ != nullptr) total_->add(amount);
    std::uint64_t level = value_.fetch_add(amount, std::memory_order_relaxed) + amount;
    std::uint64_t peak = peak_.load(std::memory_order_relaxed);
    while (level > peak) {
      if (peak_.compare_exchange_weak(peak, level, std::memory_order_relaxed)) return true;
    }
    return false;
  }
  void subtract(std::uint64_t amount) {
    if (total_ != nullptr) total_->subtract(amount);
    value_.fetch_sub(amount, std::memory_order_relaxed);
  }
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }
  std::uint64_t peak() const { return peak_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
  std::atomic<std::uint64_t> peak_{0};
  Gauge* total_ = nullptr;
};

class alignas(kCacheLine) WaitCounter {
 public:
  void add(std::uint64_t ns) {
    count_.fetch_add(1, std::memory_order_relaxed);
    ns_.fetch_add(ns, std::memory_order_relaxed);
  }
  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  std::uint64_t ns() const { return ns_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::uint64_t> ns_{0};
};

// Where the sum of live buffers was highest.
struct PeakPlace {
  std::uint64_t bytes = 0;
  std::uint64_t operation = 0;  // how many operations had been submitted
  std::uint64_t time_ns = 0;    // since start()
  std::uint64_t rounding_waste_bytes = 0;
  std::uint64_t spare_bytes = 0;  // mapped, and nobody's: parked, pooled, free blocks of slabs
};

struct Snapshot;

class Statistics {
 public:
  constexpr Statistics() = default;
  Statistics(const Statistics&) = delete;
  Statistics& operator=(const Statistics&) = delete;

#define COUNTER(name, sentence) Counter name;
#define GAUGE(name, sentence) Gauge name;
#include "profiler/statistics.def"

  // What `part` counts from now on (that of one device) counts here, too: levels at once, so that
  // the peak is that of the sum, all else when it is read. For ever, and before `part` is used. Who
  // submits operations counts them here; a part's own are those that its device has to do with.
  void add_part(Statistics& part);
  // Counted here and in the parts.
  std::uint64_t sum(const Counter Statistics::*counter) const;

  // Time counts from here. Called once, early.
  void start();
  // A monotonic_ns() reading as time since start().
  std::uint64_t since_start_ns(std::uint64_t reading) const {
    std::uint64_t start = start_ns_.load(std::memory_order_relaxed);
    return reading > start ? reading - start : 0;
  }

  // A buffer of the program's appears or goes. Use these, not the gauge, so that the peak gets its
  // place.
  void add_live(std::uint64_t bytes);
  void remove_live(std::uint64_t bytes);

  void waited(HostWait cause, std::uint64_t ns) {
    waits_[static_cast<std::size_t>(cause)].add(ns);
  }
  void passed_through(PassThrough cause) {
    passes_[static_cast<std::size_t>(cause)].add();
  }
  // Why nothing is (any longer) moved. The first cause stays.
  void set_reason(Reason reason);
  // False, and nothing changed, if none was set.
  bool reason_given(Reason* reason) const;

  // A buffer of this size was copied. Takes a short lock of its own: for copies, not for launches.
  void moved_out(std::uint64_t buffer_bytes, std::uint64_t bytes, std::uint64_t device_ns);
  void moved_in(std::uint64_t buffer_bytes, std::uint64_t bytes, std::uint64_t device_ns);

  // Consistent enough for a report: each number is exact once the program is quiet.
  void read(Snapshot& snapshot) const;

 private:
  static constexpr int kNoReason = -1;
  WaitCounter waits_[kHostWaits];
  Counter passes_[kPassThroughs];
  std::atomic<int> reason_{kNoReason};
  std::atomic<std::uint64_t> start_ns_{0};
  mutable std::atomic_flag place_lock_{};
  PeakPlace place_;
  TopBuffers top_;
  Statistics* total_ = nullptr;  // that this is a part of
  std::atomic<Statistics*> parts_{nullptr};
  Statistics* next_part_ = nullptr;
};

// The numbers of one moment, as plain data.
struct Snapshot {
  struct Level {
    std::uint64_t now;
    std::uint64_t peak;
  };
  struct Wait {
    std::uint64_t count;
    std::uint64_t ns;
  };
#define COUNTER(name, sentence) std::uint64_t name;
#define GAUGE(name, sentence) Level name;
#include "profiler/statistics.def"
  Wait waits[kHostWaits];
  std::uint64_t passes[kPassThroughs];
  PeakPlace peak;
  // Why nothing was moved, or, if copies_out is not 0 and reason_given, why moving stopped.
  Reason reason;
  bool reason_given;  // by set_reason(); otherwise concluded from the numbers
  std::uint64_t elapsed_ns;
  TopBuffers::Entry top[TopBuffers::kReported];
  std::size_t top_count;

  Wait waits_of(HostWait cause) const {
    return waits[static_cast<std::size_t>(cause)];
  }
};

// The process's own.
Statistics& statistics();

std::uint64_t monotonic_ns();

}  // namespace offload
