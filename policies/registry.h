// SPDX-License-Identifier: Apache-2.0
#pragma once
// The policies by name. A policy lives in storage of its owner's, so that nothing is allocated.

#include <cstddef>

#include "policies/policy.h"

namespace offload {

struct PolicyStorage {
  static constexpr std::size_t kBytes = 4096;
  alignas(64) std::byte bytes[kBytes];
};

// Makes the policy of that name in `storage`, which must outlive it. Called again with the same
// storage, the earlier policy is gone.
Policy& make_policy(PolicyName name, const PolicyConfig& config, PolicyStorage& storage);

// What the options say.
PolicyConfig policy_config(const Options& options);

}  // namespace offload
