// SPDX-License-Identifier: Apache-2.0
#include "profiler/statistics.h"

#include <time.h>

#include <algorithm>

#include "profiler/base/spin_guard.h"

namespace offload {
namespace {

constinit Statistics process_statistics;

struct Row {
  std::string_view name;
  std::string_view sentence;
};

// Why nothing was moved if nobody has said so.
Reason concluded(const Snapshot& snapshot) {
  if (snapshot.allocations_refused != 0) return Reason::nothing_movable;
  if (snapshot.refused_elsewhere != 0) return Reason::other_memory_ran_out;
  return snapshot.allocations == 0 ? Reason::no_allocations : Reason::it_fitted;
}

constexpr Row kHostWaitRows[] = {
#define HOST_WAIT(name, sentence) {#name, sentence},
#include "profiler/statistics.def"
};
constexpr Row kPassThroughRows[] = {
#define PASS_THROUGH(name, sentence) {#name, sentence},
#include "profiler/statistics.def"
};
constexpr Row kReasonRows[] = {
#define REASON(name, sentence) {#name, sentence},
#include "profiler/statistics.def"
};

}  // namespace

Statistics& statistics() {
  return process_statistics;
}

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::string_view name_of(HostWait cause) {
  return kHostWaitRows[static_cast<int>(cause)].name;
}
std::string_view name_of(PassThrough cause) {
  return kPassThroughRows[static_cast<int>(cause)].name;
}
std::string_view name_of(Reason reason) {
  return kReasonRows[static_cast<int>(reason)].name;
}
std::string_view sentence_of(HostWait cause) {
  return kHostWaitRows[static_cast<int>(cause)].sentence;
}
std::string_view sentence_of(PassThrough cause) {
  return kPassThroughRows[static_cast<int>(cause)].sentence;
}
std::string_view sentence_of(Reason reason) {
  return kReasonRows[static_cast<int>(reason)].sentence;
}

void Statistics::start() {
  start_ns_.store(monotonic_ns(), std::memory_order_relaxed);
}

void Statistics::add_part(Statistics& part) {
#define GAUGE(name, sentence) part.name.count_into(name);
#include "profiler/statistics.def"
  part.live_bytes.count_alone();  // add_live() passes it on, with its place
  part.total_ = this;
  part.start_ns_.store(start_ns_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  part.next_part_ = parts_.load(std::memory_order_relaxed);
  while (!parts_.compare_exchange_weak(part.next_part_, &part, std::memory_order_release)) {
  }
}

std::uint64_t Statistics::sum(const Counter Statistics::*counter) const {
  std::uint64_t sum = (this->*counter).get();
  for (const Statistics* part = parts_.load(std::memory_order_acquire); part != nullptr;
       part = part->next_part_) {
    sum += (part->*counter).get();
  }
  return sum;
}

void Statistics::add_live(std::uint64_t bytes) {
  if (total_ != nullptr) total_->add_live(bytes);
  if (!live_bytes.add(bytes)) return;
  std::uint64_t peak = live_bytes.peak();
  const std::uint64_t waste = rounding_waste_bytes.get();
  const std::uint64_t used = peak + waste;
  const std::uint64_t held = mapped_bytes.get() + host_bytes.get();
  SpinGuard guard(place_lock_);
  if (peak <= place_.bytes) return;  // another thread went higher in between
  place_ = {.bytes = peak,
            .operation = operations.get(),
            .time_ns = since_start_ns(monotonic_ns()),
            .rounding_waste_bytes = waste,
            .spare_bytes = held - std::min(held, used)};
}

void Statistics::remove_live(std::uint64_t bytes) {
  if (total_ != nullptr) total_->remove_live(bytes);
  live_bytes.subtract(bytes);
}

void Statistics::set_reason(Reason reason) {
  if (total_ != nullptr) total_->set_reason(reason);
  int none = kNoReason;
  reason_.compare_exchange_strong(none, static_cast<int>(reason), std::memory_order_relaxed);
}

bool Statistics::reason_given(Reason* reason) const {
  const int given = reason_.load(std::memory_order_relaxed);
  if (given != kNoReason) *reason = static_cast<Reason>(given);
  return given != kNoReason;
}

void Statistics::moved_out(std::uint64_t buffer_bytes, std::uint64_t bytes,
                           std::uint64_t device_ns) {
  bytes_out.add(bytes);
  copies_out.add();
  copy_out_ns.add(device_ns);
  (total_ != nullptr ? total_ : this)->top_.moved(buffer_bytes, bytes, true);
}

void Statistics::moved_in(std::uint64_t buffer_bytes, std::uint64_t bytes,
                          std::uint64_t device_ns) {
  bytes_in.add(bytes);
  copies_in.add();
  copy_in_ns.add(device_ns);
  (total_ != nullptr ? total_ : this)->top_.moved(buffer_bytes, bytes, false);
}

void Statistics::read(Snapshot& snapshot) const {
#define COUNTER(name, sentence) snapshot.name = sum(&Statistics::name);
#define GAUGE(name, sentence) snapshot.name = {name.get(), name.peak()};
#include "profiler/statistics.def"
  snapshot.operations = operations.get();  // one may have to do with several parts
  for (std::size_t i = 0; i < kHostWaits; ++i) {
    snapshot.waits[i] = {waits_[i].count(), waits_[i].ns()};
  }
  for (std::size_t i = 0; i < kPassThroughs; ++i) snapshot.passes[i] = passes_[i].get();
  for (const Statistics* part = parts_.load(std::memory_order_acquire); part != nullptr;
       part = part->next_part_) {
    for (std::size_t i = 0; i < kHostWaits; ++i) {
      snapshot.waits[i].count += part->waits_[i].count();
      snapshot.waits[i].ns += part->waits_[i].ns();
    }
  }
  {
    SpinGuard guard(place_lock_, SpinGuard::kPatient);
    snapshot.peak = place_;
  }
  std::uint64_t start = start_ns_.load(std::memory_order_relaxed);
  snapshot.elapsed_ns = start == 0 ? 0 : monotonic_ns() - start;
  int reason = reason_.load(std::memory_order_relaxed);
  snapshot.reason_given = reason != kNoReason;
  if (snapshot.reason_given) {
    snapshot.reason = static_cast<Reason>(reason);
  } else {
    snapshot.reason = concluded(snapshot);
  }
  snapshot.top_count = top_.read(snapshot.top);
}

}  // namespace offload
