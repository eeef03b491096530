// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns a touch of memory that is not mapped into what it would be on a machine with a GPU: in a
// kernel an illegal address, in host code a crash with a line that says why. One signal handler,
// put in front of the program's, which still gets everything else.

#include <cstdint>

namespace simgpu {

// Idempotent; called again before kernels run, in case the program has installed its own since.
void install_fault_handler();

// Runs body(argument). True if it came to its end; false if it touched the view where nothing is
// mapped (or mapped read-only): then *address is the program's address of that byte, and the body
// was left by a long jump.
bool run_guarded(void (*body)(void*), void* argument, uintptr_t* address);

}  // namespace simgpu
