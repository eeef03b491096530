// SPDX-License-Identifier: Apache-2.0
#pragma once
// Device memory: every extent there is, and the pool of those without an owner. Sizes are powers of
// two of the granularity. Enforces the limit on what may be mapped. Under the engine's mutex.

#include <algorithm>
#include <cstdint>

#include "interpose/engine/buffer.h"
#include "interpose/memory/address_space.h"
#include "profiler/statistics.h"

namespace offload {

// Extents that somebody can use as they are: of just this size, or none that is larger.
struct Wanted {
  uint32_t granules = ~uint32_t{0};
  bool exactly = false;
  bool served_by(uint32_t size) const { return exactly ? size == granules : size <= granules; }
};
inline constexpr Wanted kAnySize{};

class Extents {
 public:
  Extents(Port& port, Statistics& statistics);
  // `most_bytes`: what there may be once the limit is lifted.
  Status initialise(uint64_t granularity, uint64_t limit_bytes, uint64_t most_bytes,
                    uint32_t largest_granules);

  // A new extent, in three steps, as the driver takes its time: begin and end under the mutex, make
  // without. Null: the limit or the device's memory is reached. `made`: what make() said.
  Extent* begin_create(uint32_t granules);
  bool make(Extent* extent) const;
  Extent* end_create(Extent* extent, bool made);
  // Gives one that is not in the pool back to the driver, likewise. Nothing may show it but its
  // home, and its work must have passed: `fence` and `read_by`. False: the driver would not unmap
  // it, and it is in the pool again.
  bool unmake(Extent* extent) const;
  bool end_destroy(Extent* extent, bool unmade);

  // The pool. take: of exactly this size, first in first out, or null.
  void put(Extent* extent);
  Extent* take(uint32_t granules);
  // A particular one, if it is in the pool.
  bool take(Extent* extent);
  template <typename Predicate>
  Extent* find(Predicate&& wanted) {
    for (OwnDeque<Extent*>& list : pool_) {
      for (Extent* extent : list) {
        if (wanted(*extent)) return extent;
      }
    }
    return nullptr;
  }

  uint64_t granularity() const { return granularity_; }
  uint32_t largest() const { return largest_; }
  uint64_t limit_bytes() const { return limit_; }
  // The driver needed memory of its own, which is gone for us.
  void lower_limit(uint64_t bytes) {
    limit_ -= std::min(limit_, bytes);
    ceiling_ = std::min(ceiling_, mapped_);
  }
  // It could do nothing with it.
  void raise_limit(uint64_t bytes) {
    limit_ = std::min(limit_ + bytes, most_);
    ceiling_ = kNoCeiling;
  }
  void lift_limit() { limit_ = most_ = ~uint64_t{0} / 2; }  // what the device has is the limit
  uint64_t mapped_bytes() const { return mapped_; }
  uint64_t pool_bytes() const { return pooled_; }
  // What the limit and the device allow, as far as the device has been heard.
  uint64_t capacity_bytes() const { return std::min(limit_, ceiling_); }
  // What could still be created.
  uint64_t uncreated_bytes() const {
    return mapped_ >= capacity_bytes() ? 0 : capacity_bytes() - mapped_;
  }
  // The device refused once; others may have freed some of its memory since. False: it did not.
  bool try_again() {
    const bool refused = ceiling_ != kNoCeiling;
    ceiling_ = kNoCeiling;
    return refused;
  }
  uint64_t bytes_of(const Extent& extent) const { return extent.granules * granularity_; }
  // The largest size that fits into `granules`.
  uint32_t fitting(uint64_t granules) const;

 private:
  static constexpr uint64_t kNoCeiling = ~uint64_t{0};
  static constexpr int kSizes = 5;  // 1, 2, 4, 8, 16 granules
  OwnDeque<Extent*>& list(uint32_t granules);
  void refused(uint64_t bytes);

  Port& port_;
  Statistics& statistics_;
  AddressSpace homes_;
  uint64_t granularity_ = 1;
  uint64_t limit_ = 0;
  uint64_t most_ = 0;  // that the limit was
  uint32_t largest_ = 16;
  uint64_t mapped_ = 0;
  uint64_t pooled_ = 0;
  uint64_t ceiling_ = kNoCeiling;  // the device refused to hold more than this
  OwnDeque<Extent*> pool_[kSizes];
  OwnVector<Extent*> recycled_;
};

}  // namespace offload
