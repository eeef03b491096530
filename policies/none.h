// SPDX-License-Identifier: Apache-2.0
#pragma once
// Watches and counts, moves nothing, not even to keep the program from running out of memory.

#include "policies/policy.h"

namespace offload {

class NonePolicy final : public Policy {
 public:
  std::string_view name() const override { return "none"; }
  bool moves() const override { return false; }
  void freed(std::uint64_t, std::uint64_t) override {}
  std::uint64_t bytes_to_free(const DeviceMemory&) override { return 0; }
  std::size_t choose_victims(std::span<const Candidate>, std::uint64_t, std::uint64_t,
                             std::span<std::uint32_t>) override {
    return 0;
  }
  std::uint64_t victim_key(const Candidate&, std::uint64_t) const override { return 0; }
};

}  // namespace offload
