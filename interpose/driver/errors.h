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

// After these every call fails until the process (or the context) ends. CUDA_ERROR_DEINITIALIZED is
// one of them: the driver has gone before the program, which is no news to anybody.
bool is_sticky(CUresult result);
// The process is ending: the driver may go at any moment, and what fails from here on is not said.
void expect_the_end();

const char* error_name(CUresult result);

// The result of this thread's last call of ours that failed, to answer a program with.
CUresult last_failure();

// The sticky error that was met, by a call of ours or of the program's; CUDA_SUCCESS: none yet.
CUresult lost_to();
inline bool context_lost() {
  return lost_to() != CUDA_SUCCESS;
}
// Notes one. The first, true, calls the listener. From then on our own calls do nothing and succeed
// (DriverPort), so that whoever waits for the GPU goes on, and hooks answer with that error.
bool note_sticky(CUresult result);
void set_sticky_listener(void (*listener)());

}  // namespace offload
