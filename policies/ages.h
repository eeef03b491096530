// SPDX-License-Identifier: Apache-2.0
#pragma once
// How old buffers get: a streaming histogram of ages at free, in positions. Four buckets to each
// power of two, so a quantile is at most a quarter too high. Old counts fade, so that a program
// that changes its phase is followed. Fixed size, no allocation.

#include <cstddef>
#include <cstdint>

namespace offload {

class AgeHistogram {
 public:
  void add(std::uint64_t age);
  // The upper end of the bucket that holds this quantile; 0 if nothing was added.
  std::uint64_t quantile(double part) const;
  std::uint64_t count() const { return total_; }

 private:
  static constexpr std::size_t kBuckets = 64 * 4;
  static constexpr std::uint64_t kHalveAt = 8192;

  std::uint32_t buckets_[kBuckets] = {};
  std::uint64_t total_ = 0;
};

}  // namespace offload
