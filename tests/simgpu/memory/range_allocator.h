// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hands out ranges of a number line (addresses or file offsets). A range of a size that was
// released lately comes back first (last in, first out, as drivers do and as bugs like); else the
// lowest that fits. Not thread-safe: its owner locks.

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace simgpu {

class RangeAllocator {
 public:
  static constexpr uint64_t kNone = ~uint64_t{0};

  RangeAllocator(uint64_t begin, uint64_t end);

  // kNone if nothing fits. `alignment` is a power of two.
  uint64_t allocate(uint64_t size, uint64_t alignment);
  // False if any part of it is taken.
  bool allocate_at(uint64_t begin, uint64_t size);
  // Must be (part of) what was allocated; neighbours merge.
  void release(uint64_t begin, uint64_t size);

  // begin -> end of every free range.
  const std::map<uint64_t, uint64_t>& free_ranges() const { return free_; }

 private:
  struct Recent {
    uint64_t begin;
    uint64_t size;
  };
  std::map<uint64_t, uint64_t> free_;
  std::vector<Recent> recent_;  // oldest first; an entry may be stale
};

}  // namespace simgpu
