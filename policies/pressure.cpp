// SPDX-License-Identifier: Apache-2.0
#include "policies/pressure.h"

#include <algorithm>
#include <limits>

namespace offload {
namespace {

// Idle longest first; above that, the long-lived after all the others.
std::uint64_t key_of(const Candidate& candidate, std::uint64_t position,
                     std::uint64_t long_lived_age) {
  std::uint64_t age = position > candidate.birth_position ? position - candidate.birth_position : 0;
  bool long_lived = age > long_lived_age;
  return candidate.last_use_position | (std::uint64_t{long_lived} << 63);
}

}  // namespace

PressurePolicy::PressurePolicy(const PolicyConfig& config)
    : min_size_bytes_(config.min_size_bytes), watermark_(config.alpha) {}

void PressurePolicy::freed(std::uint64_t bytes, std::uint64_t age) {
  // Small buffers are no victims, so their (short) lives would only hide how long the others live.
  if (bytes >= min_size_bytes_) ages_.add(age);
}

std::uint64_t PressurePolicy::long_lived_age() const {
  if (ages_.count() < kFewestFrees) return std::numeric_limits<std::uint64_t>::max();
  return kLongLivedFactor * ages_.quantile(kAgeQuantile);
}

std::uint64_t PressurePolicy::bytes_to_free(const DeviceMemory& memory) {
  return watermark_.update(memory.total_bytes, memory.free_bytes());
}

std::uint64_t PressurePolicy::victim_key(const Candidate& candidate, std::uint64_t position) const {
  return key_of(candidate, position, long_lived_age());
}

std::size_t PressurePolicy::choose_victims(std::span<const Candidate> candidates,
                                           std::uint64_t wanted_bytes, std::uint64_t position,
                                           std::span<std::uint32_t> order) {
  std::size_t eligible = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    if (!candidate.eligible || candidate.bytes < min_size_bytes_) continue;
    order[eligible++] = static_cast<std::uint32_t>(i);
  }
  std::uint64_t long_lived = long_lived_age();
  auto later = [&](std::uint32_t a, std::uint32_t b) {
    std::uint64_t key_a = key_of(candidates[a], position, long_lived);
    std::uint64_t key_b = key_of(candidates[b], position, long_lived);
    if (key_a != key_b) return key_a > key_b;
    // Of equals the larger goes first: fewer moves make the same room.
    if (candidates[a].bytes != candidates[b].bytes)
      return candidates[a].bytes < candidates[b].bytes;
    return a > b;
  };
  // A heap, because mostly a few of many are wanted. The sorted tail of `order` grows from its end.
  auto begin = order.begin();
  std::make_heap(begin, begin + static_cast<std::ptrdiff_t>(eligible), later);
  std::size_t left = eligible;
  std::uint64_t bytes = 0;
  while (left > 0 && bytes < wanted_bytes) {
    std::pop_heap(begin, begin + static_cast<std::ptrdiff_t>(left), later);
    --left;
    bytes += candidates[order[left]].bytes;
  }
  std::size_t chosen = eligible - left;
  std::reverse(begin, begin + static_cast<std::ptrdiff_t>(eligible));
  return chosen;
}

}  // namespace offload
