// SPDX-License-Identifier: Apache-2.0
#include "interpose/hooks/wrappers.h"

#include "interpose/driver/cuda_api.h"

extern "C" {
#define HOOK(symbol, base, version, suffix, ...) \
  __attribute__((                                \
      visibility("hidden"))) extern PFN_##base##_v##version##suffix const offload_hook_##symbol;
#include "interpose/hooks.def"
}

namespace offload {
namespace {

constexpr const void* kWrappers[] = {
#define HOOK(symbol, ...) &offload_hook_##symbol,
#include "interpose/hooks.def"
};

}  // namespace

void* wrapper(Entry entry) {
  return *static_cast<void* const*>(kWrappers[index(entry)]);
}

}  // namespace offload
