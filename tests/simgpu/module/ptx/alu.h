// SPDX-License-Identifier: Apache-2.0
#pragma once
// The value that an instruction computes from its operands: everything but memory, branches and
// barriers. Results are sign-extended (signed types) or zero-extended into the 64-bit slot.

#include <cstdint>

#include "tests/simgpu/module/ptx/program.h"

namespace simgpu::ptx {

struct Operands {
  uint64_t a, b, c, d;
};

// Whether alu() knows the operation at that type, so that the rest can be refused when a kernel is
// loaded.
bool alu_supports(const Instruction& instruction);

uint64_t alu(const Instruction& instruction, const Operands& operands);

// setp's comparison, without the combination.
bool compare(const Instruction& instruction, uint64_t a, uint64_t b);

// The new content of a memory word.
uint64_t atomic_result(const Instruction& instruction, uint64_t old, uint64_t value,
                       uint64_t replacement);

// A value of `type` as it stands in a slot.
uint64_t extend(Type type, uint64_t bits);

}  // namespace simgpu::ptx
