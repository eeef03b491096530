// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a program for a whole grid on the calling thread: blocks one after another, the threads of a
// block one after another from barrier to barrier. Memory is asked for before each access. Not
// modelled: warps running in step, so a kernel that counts on it must say so by a barrier.

#include <cstdint>
#include <string>

#include "tests/simgpu/module/module.h"
#include "tests/simgpu/module/ptx/program.h"

namespace simgpu::ptx {

// Checked when a kernel is loaded. Empty: every instruction can be run; else what cannot.
std::string find_unsupported(const Program& program);

// False: the sink refused an access, the kernel trapped, left shared or local memory, or ran more
// than `instruction_limit` instructions; all but the first are said on stderr.
bool interpret(const Program& program, const SimgpuLaunch& launch, void* const* arguments,
               AccessSink& sink, uint64_t instruction_limit);

}  // namespace simgpu::ptx
