// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the simulated GPU tells the user: whole lines on stderr that start with "simgpu: ".
// Allocates nothing, so it may be called from signal handlers; cuts at 2,000 bytes.

namespace simgpu {

[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);

}  // namespace simgpu
