// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns one opcode and its operands into an instruction. Every modifier must be understood: one
// that is not makes the instruction unsupported, never quietly another one.

#include <string_view>
#include <vector>

#include "tests/simgpu/module/ptx/operands.h"

namespace simgpu::ptx {

// True if the decoder knows the opcode's first word ("ld" of "ld.global.f32").
bool knows_opcode(std::string_view opcode);

// Throws Unsupported. A branch's target is not set here.
Instruction decode(std::string_view opcode, const std::vector<Operand>& operands, Names* names);

}  // namespace simgpu::ptx
