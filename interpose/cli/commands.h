// SPDX-License-Identifier: Apache-2.0
#pragma once
// The commands of `offload`. Each takes what stands behind its name on the command line and returns
// the exit status. An ordinary program: it may allocate and throw as it likes.

#include <string>
#include <vector>

namespace offload::cli {

using Arguments = std::vector<std::string>;

inline constexpr int kExitDone = 0;
inline constexpr int kExitProblem = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNotRunnable = 126;
inline constexpr int kExitNotFound = 127;

int run_command(const Arguments& arguments);      // run.cpp
int doctor_command(const Arguments& arguments);   // doctor.cpp
int options_command(const Arguments& arguments);  // options_command.cpp

// Prints "offload: text" on stderr and a hint to the help, and returns kExitUsage. usage.cpp
int usage_error(const std::string& text);

}  // namespace offload::cli
