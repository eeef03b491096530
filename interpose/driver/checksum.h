// SPDX-License-Identifier: Apache-2.0
#pragma once
// The checksum of OFFLOAD_VERIFY: a running hash over bytes, as fast as one multiplication per word
// allows. Finds lost and reordered data, not forgery.

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace offload {

inline constexpr uint64_t kChecksumSeed = 0x9E3779B97F4A7C15;

// The sum of a whole is the sum of its second part started with that of its first, if the first is
// a multiple of 8 bytes.
inline uint64_t checksum(const void* data, size_t bytes, uint64_t sum) {
  const auto* at = static_cast<const unsigned char*>(data);
  const auto mix = [&sum](uint64_t word) {
    sum = (sum ^ word) * 0x100000001B3;
    sum ^= sum >> 29;
  };
  for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t), at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    mix(word);
  }
  if (bytes != 0) {
    uint64_t word = 0;
    std::memcpy(&word, at, bytes);
    mix(word);
  }
  return sum;
}

}  // namespace offload
