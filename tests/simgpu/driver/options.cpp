// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/driver/options.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/simgpu/driver/say.h"

namespace simgpu {
namespace detail {

bool parse_option(const std::string& text, size_t* bytes) {
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !(value >= 0)) return false;
  const std::string unit = end;
  double factor = 0;
  if (unit.empty() || unit == "B") factor = 1;
  if (unit == "KiB" || unit == "K") factor = 1024.0;
  if (unit == "MiB" || unit == "M") factor = 1024.0 * 1024;
  if (unit == "GiB" || unit == "G") factor = 1024.0 * 1024 * 1024;
  if (unit == "KB") factor = 1e3;
  if (unit == "MB") factor = 1e6;
  if (unit == "GB") factor = 1e9;
  if (factor == 0 || value * factor > 1e15) return false;
  *bytes = static_cast<size_t>(std::llround(value * factor));
  return true;
}

bool parse_option(const std::string& text, ScheduleOption* schedule) {
  if (text == "fifo") return schedule->kind = ScheduleKind::kFifo, true;
  if (text == "late") return schedule->kind = ScheduleKind::kLate, true;
  if (text.rfind("random", 0) != 0) return false;
  schedule->kind = ScheduleKind::kRandom;
  schedule->seed = 1;
  if (text == "random") return true;
  char* end = nullptr;
  if (text[6] != ':' || text.size() == 7) return false;
  schedule->seed = std::strtoull(text.c_str() + 7, &end, 10);
  return *end == '\0';
}

}  // namespace detail

namespace {

using detail::parse_option;

bool parse_option(const std::string& text, DropOption* drop) {
  if (text.empty()) return *drop = {}, true;
  char* end = nullptr;
  drop->after_s = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != ':' || !(drop->after_s >= 0)) return false;
  const char* factor = end + 1;
  drop->factor = std::strtod(factor, &end);
  return end != factor && *end == '\0' && drop->factor > 0 && drop->factor <= 1;
}

bool parse_option(const std::string& text, int* count) {
  char* end = nullptr;
  long value = std::strtol(text.c_str(), &end, 10);
  if (end == text.c_str() || *end != '\0' || value < 0 || value > 1000000000) return false;
  *count = static_cast<int>(value);
  return true;
}

bool parse_option(const std::string& text, double* rate) {
  char* end = nullptr;
  *rate = std::strtod(text.c_str(), &end);
  return end != text.c_str() && *end == '\0' && *rate > 0 && std::isfinite(*rate);
}

bool parse_option(const std::string& text, bool* flag) {
  if (text != "0" && text != "1") return false;
  *flag = text == "1";
  return true;
}

bool parse_option(const std::string& text, std::string* value) {
  *value = text;
  return true;
}

bool parse_option(const std::string& text, ClockKind* clock) {
  if (text == "off") return *clock = ClockKind::kOff, true;
  if (text == "real") return *clock = ClockKind::kReal, true;
  if (text == "virtual") return *clock = ClockKind::kVirtual, true;
  return false;
}

bool parse_option(const std::string& text, CheckMode* check) {
  if (text == "on") return *check = CheckMode::kOn, true;
  if (text == "off") return *check = CheckMode::kOff, true;
  if (text == "abort") return *check = CheckMode::kAbort, true;
  return false;
}

bool parse_option(const std::string& text, Knowledge* knowledge) {
  if (text == "shared") return *knowledge = Knowledge::kShared, true;
  if (text == "own") return *knowledge = Knowledge::kOwn, true;
  return false;
}

bool parse_option(const std::string& text, PinningWaits* waits) {
  if (text == "0") return *waits = PinningWaits::kNever, true;
  if (text == "1") return *waits = PinningWaits::kAlways, true;
  if (text == "timed") return *waits = PinningWaits::kOnTimedClocks, true;
  return false;
}

template <class T>
void read_option(const char* name, const char* preset, T* field) {
  parse_option(std::string(preset), field);
  const char* text = std::getenv(name);
  if (text == nullptr) return;
  T value{};
  if (parse_option(std::string(text), &value)) {
    *field = value;
  } else {
    say("%s=%s is not a valid value, using %s", name, text, preset);
  }
}

Options* read_options() {
  auto* result = new Options;
#define SIMGPU_OPTION(type, field, name, preset, help) \
  read_option("SIMGPU_" #name, preset, &result->field);
#include "tests/simgpu/driver/options.def"
#undef SIMGPU_OPTION
  if (result->devices > kMaxDevices) {
    say("SIMGPU_DEVICES=%d is too many, using %d", result->devices, kMaxDevices);
    result->devices = kMaxDevices;
  }
  const size_t granularity = result->granularity;
  if ((granularity & (granularity - 1)) != 0 || granularity < 4096 || granularity > 2 << 20) {
    say("SIMGPU_GRANULARITY=%zu is no power of two from 4KiB to 2MiB, using 2MiB", granularity);
    result->granularity = 2 << 20;
  }
  result->memory_bytes &= ~(result->granularity - 1);
  if (result->queue_depth < 1) result->queue_depth = 1;
  if (result->watchdog_s < 1) result->watchdog_s = 1;
  return result;
}

}  // namespace

const Options& options() {
  static const Options* instance =
      read_options();  // leaked: threads may outlive static destructors
  return *instance;
}

std::string options_help() {
  std::string text = "The simulated GPU's variables (default in brackets):\n";
#define SIMGPU_OPTION(type, field, name, preset, help) \
  text += "  SIMGPU_" #name " [" preset "]  " help "\n";
#include "tests/simgpu/driver/options.def"
#undef SIMGPU_OPTION
  return text;
}

}  // namespace simgpu
