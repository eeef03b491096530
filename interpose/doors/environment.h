// SPDX-License-Identifier: Apache-2.0
#pragma once
// setenv, putenv and unsetenv as the program calls them. PyTorch's allocator is chosen by variables
// that many scripts set before they import torch. What a program sets there means what it would
// have meant in the shell (life/pytorch.h): without a backend among its keys ours is put before
// them, and a removed variable holds our backend alone. All other names go to the C library
// untouched, and so does all that comes before the door is open. Results, errno and threads are the
// C library's; a variable of PyTorch's given to putenv is copied. clearenv is left alone: whoever
// wipes everything may mean to start another program without us.

#include "profiler/base/options.h"

namespace offload {

// Finds the real functions, which later calls, in forked children too, need not look for. Before
// main; calls that come even earlier find them for themselves.
void bind_environment();

// From here on the program's settings are completed. Before main, after our own.
void open_environment(PytorchAlloc wanted, bool no_memory_caching_is_ours);

// Whether our backend was put before what the program set, or in place of what it removed.
bool completed_pytorch_variables();

}  // namespace offload
