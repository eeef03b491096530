// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random numbers that are the same on every machine: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).

#include <cstdint>

namespace gpt {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  // A generator for one purpose, independent of how often others were asked.
  Random(uint64_t seed, uint64_t purpose, uint64_t index)
      : state_(Random(Random(seed).next() + purpose).next() + index) {}

  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // In [0, bound).
  int64_t below(int64_t bound) { return int64_t(next() % uint64_t(bound)); }
  // Mean 0, variance 1: twelve uniform numbers added, without a call of libm.
  float normal() {
    double sum = -6.0;
    for (int i = 0; i < 12; ++i) sum += double(next() >> 11) * 0x1p-53;
    return float(sum);
  }

 private:
  uint64_t state_;
};

}  // namespace gpt
