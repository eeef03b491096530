// SPDX-License-Identifier: Apache-2.0
#include "policies/registry.h"

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

PolicyConfig policy_config(const Options& options) {
  return {.alpha = options.watermark, .min_size_bytes = options.min_size_bytes};
}

}  // namespace offload
