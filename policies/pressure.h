// SPDX-License-Identifier: Apache-2.0
#pragma once
// Offloads under memory pressure and learns nothing: on below the watermark, and when somebody
// finds no extent. Victims are the buffers idle longest among the young. Long-lived ones (weights,
// optimizer state: older than twice the 95th percentile of ages at free) are idle longest of all,
// yet every period needs them: they come last.

#include "policies/ages.h"
#include "policies/policy.h"
#include "policies/watermark.h"

namespace offload {

class PressurePolicy final : public Policy {
 public:
  static constexpr double kAgeQuantile = 0.95;
  static constexpr std::uint64_t kLongLivedFactor = 2;
  // Fewer frees than this say nothing about ages; everything then counts as young.
  static constexpr std::uint64_t kFewestFrees = 16;

  explicit PressurePolicy(const PolicyConfig& config);

  std::string_view name() const override { return "pressure"; }
  bool moves() const override { return true; }
  void freed(std::uint64_t bytes, std::uint64_t age) override;
  std::uint64_t bytes_to_free(const DeviceMemory& memory) override;
  std::size_t choose_victims(std::span<const Candidate> candidates, std::uint64_t wanted_bytes,
                             std::uint64_t position, std::span<std::uint32_t> order) override;
  std::uint64_t victim_key(const Candidate& candidate, std::uint64_t position) const override;

  // Ages above this are long-lived.
  std::uint64_t long_lived_age() const;

 private:
  std::uint64_t min_size_bytes_;
  Watermark watermark_;
  AgeHistogram ages_;
};

}  // namespace offload
