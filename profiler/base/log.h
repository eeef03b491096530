// SPDX-License-Identifier: Apache-2.0
#pragma once
// Messages to the user: "liboffload[pid]: level: text\n", one write each, to stderr or a file.
// Formatted on the stack, no allocation, no lock, safe on any thread and before main; errno is
// kept. A message longer than the buffer is cut. Calls from inside a sink are dropped. A message of
// levels error and warn that comes again and again from the same place is said kRepeats times, then
// not any more.
//
// Messages for users say what failed, what happens instead, and how to mend it.

#include <cstdint>
#include <string_view>

#include "profiler/base/options.h"

namespace offload {

inline constexpr int kRepeats = 8;

// Receives a whole line, newline included. Must not allocate through the program's malloc.
using LogSink = void (*)(std::string_view line);

// Everything above `level` is dropped. kWarn before the first call.
void set_log_level(LogLevel level);
bool log_enabled(LogLevel level);
// Lines go to this file, made when the first line is written (so that a process which says nothing
// leaves none), or to stderr if the pattern is empty or the file cannot be made. `pattern` must
// outlive the process's last message.
void set_log_file(const char* pattern);
// Null brings the file or stderr back. For tests.
void set_log_sink(LogSink sink);

__attribute__((format(printf, 1, 2))) void log_error(const char* format, ...);
__attribute__((format(printf, 1, 2))) void log_warn(const char* format, ...);
__attribute__((format(printf, 1, 2))) void log_info(const char* format, ...);
__attribute__((format(printf, 1, 2))) void log_debug(const char* format, ...);
__attribute__((format(printf, 1, 2))) void log_trace(const char* format, ...);

// Forgets what has been said, so that the caps start again. For tests.
void reset_log_repeats();

}  // namespace offload
