// SPDX-License-Identifier: Apache-2.0
#pragma once
// A policy that does what a test says: which buffers leave, in which order, and how much at the
// next look. Without a word it takes the buffer idle longest, and only when somebody needs room.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "policies/policy.h"

namespace offload::model {

class PlayedPolicy final : public Policy {
 public:
  std::vector<uint64_t> first;  // ids: these leave first, in this order
  bool only_first = false;      // and no others
  uint64_t wanted_bytes = 0;    // what bytes_to_free says
  uint32_t per_thousand = 0;    // chance that it wants something all the same
  bool shuffle = false;         // an order by chance
  std::mt19937_64 random;
  std::function<void()> choosing;  // another thread does something just now

  std::string_view name() const override { return "played"; }
  bool moves() const override { return true; }
  void freed(uint64_t, uint64_t) override {}
  uint64_t bytes_to_free(const DeviceMemory& memory) override {
    if (per_thousand != 0 && random() % 1000 < per_thousand) return memory.total_bytes / 4;
    return wanted_bytes;
  }
  size_t choose_victims(std::span<const Candidate> candidates, uint64_t, uint64_t position,
                        std::span<uint32_t> order) override {
    size_t count = 0;
    for (uint32_t i = 0; i < candidates.size(); ++i) {
      if (!candidates[i].eligible) continue;
      if (only_first && rank(candidates[i].id) == first.size()) continue;
      order[count++] = i;
    }
    std::stable_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
                     [&](uint32_t a, uint32_t b) {
                       return victim_key(candidates[a], position) <
                              victim_key(candidates[b], position);
                     });
    if (shuffle) {
      std::shuffle(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), random);
    }
    if (choosing) std::exchange(choosing, nullptr)();
    return count;
  }
  uint64_t victim_key(const Candidate& candidate, uint64_t) const override {
    return rank(candidate.id) << 40 | candidate.last_use_position;
  }

 private:
  uint64_t rank(uint64_t id) const {
    return static_cast<uint64_t>(std::find(first.begin(), first.end(), id) - first.begin());
  }
};

}  // namespace offload::model
