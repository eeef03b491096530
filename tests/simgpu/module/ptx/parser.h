// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads a PTX module: entries, their parameters, registers, shared and local arrays, and
// instructions. What the interpreter cannot do (device functions, module-scope variables, textures,
// warp operations, half precision) is no error: the entry is returned with `unsupported` naming the
// first such thing. A text that is no PTX is one.

#include <string>
#include <string_view>
#include <vector>

#include "tests/simgpu/module/ptx/program.h"

namespace simgpu::ptx {

bool parse_module(std::string_view text, std::vector<Program>* programs, std::string* error);

}  // namespace simgpu::ptx
