// SPDX-License-Identifier: Apache-2.0
#pragma once
// The simulated GPU's options, read once from SIMGPU_* variables. A bad value is told in one line
// on stderr and the default is taken. Immutable after the first call; any thread.

#include <cstddef>
#include <cstdint>
#include <string>

namespace simgpu {

enum class ScheduleKind { kFifo, kRandom, kLate };
enum class ClockKind { kOff, kReal, kVirtual };
enum class CheckMode { kOff, kOn, kAbort };
enum class Knowledge { kShared, kOwn };
enum class PinningWaits { kNever, kAlways, kOnTimedClocks };

struct ScheduleOption {
  ScheduleKind kind = ScheduleKind::kFifo;
  uint64_t seed = 0;
};

// From `after_s` on links run at `factor` of their rate.
struct DropOption {
  double after_s = 0;
  double factor = 1;
};

namespace option_type {
using Drop = DropOption;
using Size = size_t;  // bytes
using Count = int;
using Schedule = ScheduleOption;
using Clock = ClockKind;
using Check = CheckMode;
using Knowledge = simgpu::Knowledge;
using PinningWaits = simgpu::PinningWaits;
using Flag = bool;
using Rate = double;
using Text = std::string;
}  // namespace option_type

struct Options {
#define SIMGPU_OPTION(type, field, name, preset, help) option_type::type field{};
#include "tests/simgpu/driver/options.def"
#undef SIMGPU_OPTION
};

inline constexpr int kMaxDevices = 8;

const Options& options();

// The table that SIMGPU_HELP=1 prints: one line per option, "SIMGPU_NAME  default  help".
std::string options_help();

namespace detail {
// The parsers, for tests: true if `text` is a value of that type.
bool parse_option(const std::string& text, size_t* bytes);
bool parse_option(const std::string& text, ScheduleOption* schedule);
}  // namespace detail

}  // namespace simgpu
