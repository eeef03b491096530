// SPDX-License-Identifier: Apache-2.0
#pragma once
// The wrapper of each hooked entry. Constant.

#include "interpose/doors/entries.h"

namespace offload {

void* wrapper(Entry entry);

}  // namespace offload
