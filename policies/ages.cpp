// SPDX-License-Identifier: Apache-2.0
#include "policies/ages.h"

#include <bit>

namespace offload {
namespace {

// Ages below 4 have a bucket each; above, the two bits after the leading one choose the quarter.
std::size_t bucket_of(std::uint64_t age) {
  if (age < 4) return static_cast<std::size_t>(age);
  unsigned exponent = static_cast<unsigned>(std::bit_width(age)) - 1;
  std::size_t quarter = static_cast<std::size_t>(age >> (exponent - 2)) & 3;
  return (exponent - 1) * 4 + quarter;
}

std::uint64_t upper_end(std::size_t bucket) {
  if (bucket < 4) return bucket;
  unsigned exponent = static_cast<unsigned>(bucket / 4) + 1;
  std::uint64_t width = std::uint64_t{1} << (exponent - 2);
  return (4 + bucket % 4) * width + (width - 1);
}

}  // namespace

void AgeHistogram::add(std::uint64_t age) {
  ++buckets_[bucket_of(age)];
  if (++total_ < kHalveAt) return;
  total_ = 0;
  for (std::uint32_t& bucket : buckets_) {
    bucket /= 2;
    total_ += bucket;
  }
}

std::uint64_t AgeHistogram::quantile(double part) const {
  if (total_ == 0) return 0;
  double wanted = part * static_cast<double>(total_);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (static_cast<double>(seen) >= wanted) return upper_end(i);
  }
  return upper_end(kBuckets - 1);
}

}  // namespace offload
