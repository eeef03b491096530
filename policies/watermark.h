// SPDX-License-Identifier: Apache-2.0
#pragma once
// When offloading is on: from M_free < theta, theta = alpha * M_total, until M_free >= kOffAt *
// theta. The gap keeps a run that hovers at the watermark from switching with every buffer, and is
// what one round of evictions makes room for.

#include <cstdint>

namespace offload {

class Watermark {
 public:
  static constexpr double kOffAt = 1.5;

  explicit Watermark(double alpha) : alpha_(alpha) {}

  // Returns how many bytes must leave for offloading to turn off again; 0 while it is off.
  std::uint64_t update(std::uint64_t total_bytes, std::uint64_t free_bytes);
  bool is_on() const { return on_; }

 private:
  double alpha_;
  bool on_ = false;
};

}  // namespace offload
