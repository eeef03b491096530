// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a kernel of unknown effect does in simulation: it hashes the contents of all that its
// arguments name, with its name and grid, and writes words made from that hash over all of it. So a
// byte that was lost, or arrived late, changes everything computed after it. Argument values and
// addresses never enter the hash: they differ between runs that must agree. Each aligned 8-byte
// word written is hash & 0x7f: read as any integer it is small, as any float finite, so programs
// that branch on results keep running. One table row (mix.cpp) keeps a flag down that would steer
// the program.

#include <string>
#include <vector>

#include "tests/simgpu/module/module.h"

namespace simgpu {

// Names: every aligned 8-byte word of every parameter that holds a device address. Contents are
// touched without asking the sink. May be abandoned by a long jump: owns nothing while it touches
// them.
void mix(const std::string& name, const std::vector<KernelParameter>& parameters,
         const SimgpuLaunch& launch, void* const* arguments, AccessSink& sink);

}  // namespace simgpu
