// SPDX-License-Identifier: Apache-2.0
#pragma once
// Handles and addresses that mean nothing.

#include <atomic>
#include <cstdint>

namespace null_driver {

inline constexpr uint64_t kGranularity = 2ull << 20;
inline constexpr uint64_t kDeviceBytes = 80ull << 30;

// Another one with each call, never null.
template <typename Handle>
Handle made_up_handle() {
  static std::atomic<uintptr_t> last{0x1000};
  return reinterpret_cast<Handle>(last.fetch_add(0x10, std::memory_order_relaxed));
}

// The same with each call.
template <typename Handle>
Handle the_only_handle() {
  return reinterpret_cast<Handle>(uintptr_t{0x100});
}

// A range of that many bytes that was not handed out before, on a granule.
inline uint64_t made_up_range(uint64_t bytes) {
  static std::atomic<uint64_t> next{uint64_t{0x500} << 32};
  const uint64_t whole = (bytes + kGranularity - 1) / kGranularity * kGranularity;
  return next.fetch_add(whole, std::memory_order_relaxed);
}

}  // namespace null_driver
