// SPDX-License-Identifier: Apache-2.0
#include "interpose/memory/address_space.h"

#include <iterator>

namespace offload {

Status AddressSpace::reserve(Port& port, uint64_t bytes, uint64_t granularity,
                             uint64_t low_half_floor) {
  granularity_ = granularity;
  low_half_floor_ = low_half_floor;
  const Status status = port.reserve(bytes, &base_);
  if (status != Status::kOk) return status;
  bytes_ = bytes;
  free_[base_] = bytes / granularity;
  return Status::kOk;
}

// The first acceptable start in a free range, or 0.
Address AddressSpace::fit(Address begin, uint64_t range_granules, uint64_t granules) const {
  constexpr uint64_t kLowHalf = uint64_t{1} << 32;
  const Address end = begin + range_granules * granularity_;
  Address at = begin;
  if (low_half_floor_ != 0) {
    const uint64_t size = granules * granularity_;
    // A range that cannot fit between two floors may cross one.
    const bool fits_between = size <= kLowHalf - low_half_floor_;
    if (at % kLowHalf < low_half_floor_) at += low_half_floor_ - at % kLowHalf;
    if (fits_between && at % kLowHalf + size > kLowHalf) {
      at += kLowHalf - at % kLowHalf + low_half_floor_;
    }
  }
  return at < end && (end - at) / granularity_ >= granules ? at : 0;
}

Address AddressSpace::take(uint64_t granules) {
  auto best = free_.end();
  Address best_at = 0;
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    if (range->second < granules) continue;
    if (best != free_.end() && range->second >= best->second) continue;
    if (const Address at = fit(range->first, range->second, granules); at != 0) {
      best = range;
      best_at = at;
      if (range->second == granules) break;
    }
  }
  if (best == free_.end()) return 0;
  const Address begin = best->first;
  const Address end = begin + best->second * granularity_;
  const Address taken_end = best_at + granules * granularity_;
  free_.erase(best);
  if (best_at > begin) free_[begin] = (best_at - begin) / granularity_;
  if (taken_end < end) free_[taken_end] = (end - taken_end) / granularity_;
  return best_at;
}

void AddressSpace::give_back(Address address, uint64_t granules) {
  auto next = free_.lower_bound(address);
  if (next != free_.end() && address + granules * granularity_ == next->first) {
    granules += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second * granularity_ == address) {
      before->second += granules;
      return;
    }
  }
  free_[address] = granules;
}

}  // namespace offload
