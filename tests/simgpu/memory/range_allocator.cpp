// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/memory/range_allocator.h"

namespace simgpu {

namespace {
constexpr size_t kRecentRanges = 64;
}

RangeAllocator::RangeAllocator(uint64_t begin, uint64_t end) {
  free_.emplace(begin, end);
}

bool RangeAllocator::allocate_at(uint64_t begin, uint64_t size) {
  auto it = free_.upper_bound(begin);
  if (it == free_.begin()) return false;
  --it;
  const uint64_t free_begin = it->first;
  const uint64_t free_end = it->second;
  if (begin < free_begin || free_end - begin < size || begin > free_end) return false;
  free_.erase(it);
  if (free_begin < begin) free_.emplace(free_begin, begin);
  if (begin + size < free_end) free_.emplace(begin + size, free_end);
  return true;
}

uint64_t RangeAllocator::allocate(uint64_t size, uint64_t alignment) {
  const uint64_t mask = alignment - 1;
  for (size_t i = recent_.size(); i-- > 0;) {
    const Recent candidate = recent_[i];
    if (candidate.size != size || (candidate.begin & mask) != 0) continue;
    recent_.erase(recent_.begin() + static_cast<ptrdiff_t>(i));
    if (allocate_at(candidate.begin, size)) return candidate.begin;
  }
  for (const auto& [begin, end] : free_) {
    const uint64_t aligned = (begin + mask) & ~mask;
    if (aligned < end && end - aligned >= size) {
      allocate_at(aligned, size);
      return aligned;
    }
  }
  return kNone;
}

void RangeAllocator::release(uint64_t begin, uint64_t size) {
  if (recent_.size() == kRecentRanges) recent_.erase(recent_.begin());
  recent_.push_back({begin, size});
  uint64_t end = begin + size;
  auto next = free_.lower_bound(begin);
  if (next != free_.end() && next->first == end) {
    end = next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto previous = std::prev(next);
    if (previous->second == begin) {
      previous->second = end;
      return;
    }
  }
  free_.emplace(begin, end);
}

}  // namespace simgpu
