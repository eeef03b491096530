// SPDX-License-Identifier: Apache-2.0
#pragma once
// What becomes of a driver call of ours that fails: one line per API and code, and a status for the
// engine.

#include "interpose/driver/cuda_api.h"
#include "interpose/engine/port.h"

namespace offload {

// Turns the result of our own call into a status. A failure is logged once per (api, code): what
// failed and `instead`, what happens now. Out of memory is an everyday answer and logged at debug
// only.
Status status_of(CUresult result, const char* api, const char* instead);

// After these every call fails until the process (or the context) ends.
bool is_sticky(CUresult result);

const char* error_name(CUresult result);

// The result of this thread's last call of ours that failed, to answer a program with.
CUresult last_failure();

// Called once, when one of our own calls meets a sticky error.
void set_sticky_listener(void (*listener)());

}  // namespace offload
