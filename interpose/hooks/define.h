// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a family of hooks becomes wrappers. A file of hooks/ defines templates over Entry, then says
//   #define FAMILY_launches DEFINE_HOOK
//   #include "interpose/hooks/families.h"
// which makes, for each row of its family in hooks.def, the pointer that the exported name jumps
// through (exports.S) and that the doors hand out. The pointer has the type that cuda.h gives the
// entry, so a wrapper of the wrong type does not compile.

#include "interpose/driver/table.h"

#define DEFINE_HOOK(symbol, base, version, suffix, function)                              \
  extern "C" __attribute__((visibility(                                                   \
      "hidden"))) constinit PFN_##base##_v##version##suffix const offload_hook_##symbol = \
      &::offload::function<::offload::Entry::symbol>;
