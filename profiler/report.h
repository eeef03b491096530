// SPDX-License-Identifier: Apache-2.0
#pragma once
// The summary at exit, as text for people and as JSON for programs. Pure functions of a snapshot
// and of facts about the process; nothing allocates. The JSON is an interface: kReportFormat grows
// when a key changes its meaning or goes away.

#include <cstdint>
#include <span>
#include <string_view>

#include "profiler/base/options.h"
#include "profiler/base/sink.h"
#include "profiler/statistics.h"

namespace offload {

inline constexpr std::uint64_t kReportFormat = 1;

// One of several devices. Its snapshot's totals are its own; what only the process counts is 0.
struct DeviceFacts {
  std::uint32_t ordinal = 0;
  std::string_view name;
  std::uint64_t total_bytes = 0;
  std::uint64_t limit_bytes = 0;
  const Snapshot* counts = nullptr;
};

// What the counters do not know. Texts may be empty, numbers 0, where the engine has nothing to
// say.
struct ReportFacts {
  std::string_view version;  // of liboffload
  std::string_view program;  // its name
  std::string_view device;   // its name
  Mode mode = Mode::kOffload;
  PolicyName policy = PolicyName::kPressure;
  Evicted evicted = Evicted::kAuto;  // as decided, once it is
  std::string_view incomplete{};     // why the numbers are not final; empty: they are
  std::uint64_t device_total_bytes = 0;
  std::uint64_t gpu_limit_bytes = 0;  // what we may map
  std::uint64_t host_limit_bytes = 0;
  std::uint64_t own_memory_bytes = 0;  // what liboffload itself has allocated, now
  // Link rates as measured by the engine; 0: taken from the copies themselves.
  double d2h_bytes_per_s = 0;
  double h2d_bytes_per_s = 0;
  // Every device that was managed, by ordinal. `device`, its size and its limit are the first's.
  std::span<const DeviceFacts> devices{};
};

void write_text_report(const Snapshot& snapshot, const ReportFacts& facts, Sink out);
void write_json_report(const Snapshot& snapshot, const ReportFacts& facts, Sink out);

// Writes what OFFLOAD_REPORT asks for to where OFFLOAD_REPORT_FILE says, makes the file, and says
// at level info where it is. A file that cannot be made is a warning, and the text goes to stderr
// instead (JSON goes nowhere).
void write_report(const Options& options, const ReportFacts& facts, const Snapshot& snapshot);

}  // namespace offload
