// SPDX-License-Identifier: Apache-2.0
#pragma once
// Asks the driver for a kernel's parameters. A CUkernel may be passed as a CUfunction: both
// questions are tried.

#include "interpose/naming/layouts.h"

namespace offload {

LayoutAnswer ask_driver(const void* function, size_t index, ParameterInfo* out);

}  // namespace offload
