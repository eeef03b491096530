// SPDX-License-Identifier: Apache-2.0
#pragma once
// The policies by name. A policy lives in storage of its owner's, so that nothing is allocated.

#include <cstddef>
#include <cstdint>

#include "policies/policy.h"

namespace offload {

struct PolicyStorage {
  static constexpr std::size_t kBytes = 4096;
  alignas(64) std::byte bytes[kBytes];
};

// Makes the policy of that name in `storage`, which must outlive it. Called again with the same
// storage, the earlier policy is gone.
Policy& make_policy(PolicyName name, const PolicyConfig& config, PolicyStorage& storage);

// The least size that moves (OFFLOAD_MIN_SIZE), in bytes. Where the user said none: the default,
// but no more than a 256th of the `limit_bytes` that the device has for the program, so that a
// small card holds more than a handful of buffers that stay; nor less than an eighth of a page,
// which is what such a buffer takes.
std::uint64_t least_moved_bytes(const Options& options, std::uint64_t limit_bytes,
                                std::uint64_t granularity);

// What the options say for such a device.
PolicyConfig policy_config(const Options& options, std::uint64_t limit_bytes,
                           std::uint64_t granularity);

}  // namespace offload
