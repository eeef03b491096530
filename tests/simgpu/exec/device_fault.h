// SPDX-License-Identifier: Apache-2.0
#pragma once
// An operation touched memory that is not there: the context is lost, every later call returns 700.

#include <cstdint>
#include <string>

#include "tests/simgpu/driver/context.h"

namespace simgpu {

void device_fault(Context& context, const std::string& operation, uintptr_t address);

}  // namespace simgpu
