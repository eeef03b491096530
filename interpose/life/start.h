// SPDX-License-Identifier: Apache-2.0
#pragma once
// The beginning: options and PyTorch's variables, once per process, from the constructor or from
// whoever calls first. Neither calls CUDA nor starts a thread.

#include "profiler/base/options.h"

namespace offload {

// Does what the constructor does, if it has not been done.
void start();

const Options& options();

// A door met a driver. Says what was wrong with the options, if something was. False: every call is
// to be forwarded (OFFLOAD_DISABLE, or a bad option while OFFLOAD_STRICT=1).
bool driver_in_use();

bool driver_was_met();
// Without a driver: messages go where the options say.
void start_to_speak();

// The pool of traps is used up: an unknown entry was handed out unguarded.
void no_more_traps(const char* entry);

}  // namespace offload
