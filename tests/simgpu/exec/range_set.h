// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bytes that were accessed, as disjoint ranges. Long runs of neighbours are kept as such; short
// ones, as of a grid whose threads stride through a buffer, as bits.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>

namespace simgpu {

class RangeSet {
 public:
  void add(uintptr_t begin, uintptr_t end);
  bool contains(uintptr_t begin, uintptr_t end) const;
  // All of it: begin -> end. Nothing may be added afterwards.
  const std::map<uintptr_t, uintptr_t>& finish();

 private:
  static constexpr uintptr_t kChunk = 64 << 10;  // bytes, a bit for each
  struct Run {
    uintptr_t begin = 0;
    uintptr_t end = 0;
  };
  struct Chunk {
    std::array<uint64_t, kChunk / 64> bits{};
  };
  struct Recent {
    uintptr_t index = UINTPTR_MAX;
    Chunk* chunk = nullptr;
  };

  void close(const Run& run);
  void insert(uintptr_t begin, uintptr_t end);
  Chunk* find(uintptr_t index) const;
  // How far it is known from `at` on, without a gap; no further than `end` matters.
  uintptr_t known_until(uintptr_t at, uintptr_t end) const;

  std::array<Run, 8> open_{};
  size_t next_ = 0;
  std::map<uintptr_t, uintptr_t> long_;
  std::unordered_map<uintptr_t, std::unique_ptr<Chunk>> short_;  // by address / kChunk
  mutable std::array<Recent, 16> recent_{};
};

}  // namespace simgpu
