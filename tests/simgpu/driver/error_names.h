// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names and texts of CUresult values. Null: no such value.

#include <cuda.h>

namespace simgpu {

const char* error_name(CUresult error);
const char* error_text(CUresult error);

}  // namespace simgpu
