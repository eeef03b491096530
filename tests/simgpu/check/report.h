// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reports of the checker: blocks of lines on stderr. After the first twenty they are only counted.
// The process that made any ends with status 97 (see driver/exit.cpp), or aborts at the first with
// SIMGPU_CHECK=abort.

#include <cstdint>
#include <string>

namespace simgpu {

inline constexpr int kReportExitStatus = 97;

// `text` may have several lines; the first follows "simgpu: check: ".
void report(const std::string& text);
uint64_t report_count();

}  // namespace simgpu
