// SPDX-License-Identifier: Apache-2.0
#include "policies/registry.h"

#include <algorithm>
#include <new>

#include "policies/none.h"
#include "policies/pressure.h"

namespace offload {
namespace {

template <class Kind, class... Arguments>
Policy& make(PolicyStorage& storage, const Arguments&... arguments) {
  static_assert(sizeof(Kind) <= PolicyStorage::kBytes);
  return *new (storage.bytes) Kind(arguments...);
}

}  // namespace

Policy& make_policy(PolicyName name, const PolicyConfig& config, PolicyStorage& storage) {
  switch (name) {
    case PolicyName::kNone:
      return make<NonePolicy>(storage);
    case PolicyName::kPressure:
      break;
  }
  return make<PressurePolicy>(storage, config);
}

std::uint64_t least_moved_bytes(const Options& options, std::uint64_t limit_bytes,
                                std::uint64_t granularity) {
  constexpr std::uint64_t kPartOfLimit = 256;
  if (options.source_of(OptionId::min_size_bytes) == OptionSource::kEnvironment)
    return options.min_size_bytes;
  return std::min(options.min_size_bytes, std::max(limit_bytes / kPartOfLimit, granularity / 8));
}

PolicyConfig policy_config(const Options& options, std::uint64_t limit_bytes,
                           std::uint64_t granularity) {
  return {.alpha = options.watermark,
          .min_size_bytes = least_moved_bytes(options, limit_bytes, granularity)};
}

}  // namespace offload
