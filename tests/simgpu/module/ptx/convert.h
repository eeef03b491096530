// SPDX-License-Identifier: Apache-2.0
#pragma once
// The cvt instruction.

#include <cstdint>

#include "tests/simgpu/module/ptx/program.h"

namespace simgpu::ptx {

uint64_t convert(const Instruction& instruction, uint64_t source);

}  // namespace simgpu::ptx
