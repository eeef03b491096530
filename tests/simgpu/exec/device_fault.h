// SPDX-License-Identifier: Apache-2.0
#pragma once
// An operation touched memory that is not there: the context is lost, every later call returns 700.

#include <cstdint>
#include <string>

#include "tests/simgpu/driver/context.h"

namespace simgpu {

// A kernel that could not be run to its end for another reason: 719.
void launch_failure(Context& context, const std::string& operation);
void device_fault(Context& context, const std::string& operation, uintptr_t address);

}  // namespace simgpu
