// SPDX-License-Identifier: Apache-2.0
#pragma once
// Asks the driver for a kernel's parameters, and its name. A CUkernel may be passed as a
// CUfunction: both questions are tried.

#include "interpose/naming/layouts.h"

namespace offload {

LayoutAnswer ask_driver(const void* function, size_t index, ParameterInfo* out);

// Whether it is one of NCCL's, which awaits those of other processes, whoever launches it. NCCL may
// be linked into another library.
bool is_collective(const void* function);

}  // namespace offload
