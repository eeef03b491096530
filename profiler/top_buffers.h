// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which buffers cost most to move, in a fixed table. With one allocation per tensor a buffer lives
// for one step, so what comes back step after step is its size: buffers are counted together by
// exact size. When the table is full the size that moved least gives way and its bytes are
// inherited as a bound on the error (Metwally, Agrawal, El Abbadi: "Efficient computation of
// frequent and top-k elements in data streams", 2005).

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace offload {

class TopBuffers {
 public:
  static constexpr std::size_t kTracked = 64;
  static constexpr std::size_t kReported = 10;

  struct Entry {
    std::uint64_t buffer_bytes = 0;
    std::uint64_t copies_out = 0;
    std::uint64_t copies_in = 0;
    std::uint64_t moved_bytes = 0;  // both ways
    std::uint64_t error_bytes = 0;  // moved_bytes is too high by at most this
  };

  constexpr TopBuffers() = default;
  // `bytes` of a buffer: all of it, or the part that was away.
  void moved(std::uint64_t buffer_bytes, std::uint64_t bytes, bool out);
  // The entries that moved most, first the largest; returns how many.
  std::size_t read(std::span<Entry> entries) const;

 private:
  mutable std::atomic_flag lock_{};
  std::size_t count_ = 0;
  Entry entries_[kTracked] = {};
};

}  // namespace offload
