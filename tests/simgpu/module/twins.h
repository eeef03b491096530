// SPDX-License-Identifier: Apache-2.0
#pragma once
// The CPU twins that are at hand: from the libraries named in SIMGPU_TWINS and from
// "<executable>.twins.so". They are opened at the first look-up and stay for the life of the
// process. Thread-safe.

#include <string>

#include "tests/simgpu/twin.h"

namespace simgpu {

// Null: no twin of that name.
const SimgpuTwin* find_twin(const std::string& name);

}  // namespace simgpu
