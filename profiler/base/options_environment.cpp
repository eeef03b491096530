// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/options_environment.h"

#include <cstdarg>
#include <cstdio>

#include "profiler/base/log.h"

namespace offload {
namespace {

constexpr std::size_t kShownBytes = 64;  // of a value or name that somebody else wrote

__attribute__((format(printf, 2, 3))) void add_problem(OptionProblems& problems, const char* format,
                                                       ...) {
  if (problems.count < OptionProblems::kCapacity) {
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(problems.messages[problems.count], OptionProblems::kMessageBytes, format,
                   arguments);
    va_end(arguments);
  }
  ++problems.count;
}

// What a stranger wrote, made fit for one line of a terminal.
struct Shown {
  char data[kShownBytes + 4];
  explicit Shown(std::string_view text) {
    std::size_t used = 0;
    for (char c : text.substr(0, kShownBytes)) {
      unsigned char byte = static_cast<unsigned char>(c);
      data[used++] = byte < 0x20 || byte == 0x7f ? '?' : c;
    }
    const char* end = text.size() > kShownBytes ? "..." : "";
    std::snprintf(data + used, sizeof data - used, "%s", end);
  }
};

void report_unknown(std::string_view variable, OptionProblems& problems) {
  Shown shown(variable);
  OptionId near{};
  if (nearest_option(variable.substr(kOptionPrefix.size()), near)) {
    add_problem(problems, "%s is not an option and is ignored; did you mean %s%s?", shown.data,
                kOptionPrefix.data(), option_info(near).name.data());
  } else {
    add_problem(problems, "%s is not an option and is ignored; \"offload options\" lists them all",
                shown.data);
  }
}

}  // namespace

bool is_foreign_name(std::string_view variable) {
  return variable == "OFFLOAD_TRACE" || variable == "OFFLOAD_TRACK_ALLOCATION_TRACES";
}

namespace {

void describe_bad_value(OptionId id, std::string_view text, bool fatal, std::span<char> out) {
  const OptionInfo& info = option_info(id);
  char wanted[128];
  info.expected(info.range, std::span<char>(wanted));
  const char* fallback = info.default_text.empty() ? "nothing" : info.default_text.data();
  std::snprintf(out.data(), out.size(), "%s%s=%s is not understood; %s%s%sexpected %s",
                kOptionPrefix.data(), info.name.data(), Shown(text).data,
                fatal ? "" : "using the default, ", fatal ? "" : fallback, fatal ? "" : "; ",
                wanted);
}

// Messages about other variables depend on it, wherever it stands.
bool strict_is_wanted(const char* const* environment) {
  constexpr std::string_view kStrict = "OFFLOAD_STRICT=";
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    Options scratch{};
    if (entry.starts_with(kStrict) &&
        set_option(scratch, OptionId::strict, entry.substr(kStrict.size()),
                   OptionSource::kEnvironment))
      return scratch.strict;
  }
  return false;
}

}  // namespace

bool read_options(const char* const* environment, Options& options, OptionProblems& problems) {
  set_defaults(options);
  const bool strict = strict_is_wanted(environment);
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    std::string_view entry = *environment;
    if (!entry.starts_with(kOptionPrefix)) continue;
    std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    std::string_view variable = entry.substr(0, equals);
    std::string_view value = entry.substr(equals + 1);
    OptionId id{};
    if (!find_option(variable.substr(kOptionPrefix.size()), id)) {
      if (!is_foreign_name(variable)) report_unknown(variable, problems);
      continue;
    }
    OptionSource& source = options.source[static_cast<std::size_t>(id)];
    if (value.empty() || source != OptionSource::kDefault) continue;
    if (set_option(options, id, value, OptionSource::kEnvironment)) continue;
    source = OptionSource::kRejected;
    char message[OptionProblems::kMessageBytes];
    describe_bad_value(id, value, strict, message);
    add_problem(problems, "%s", message);
    ++problems.bad_values;
  }
  if (options.report == Report::kOff &&
      options.source_of(OptionId::report_file) == OptionSource::kEnvironment) {
    add_problem(problems,
                "OFFLOAD_REPORT_FILE is set, but OFFLOAD_REPORT is off, so no report is written; "
                "OFFLOAD_REPORT=text or json writes one");
  }
  if (!options.strict || problems.bad_values == 0) return true;
  options.disable = true;
  return false;
}

void start_log(const Options& options, const OptionProblems& problems) {
  // A named array, so that no other message's "%s" counts as a repeat of this one.
  static constexpr char kFormat[] = "%s";
  set_log_level(options.log);
  set_log_file(options.log_file.c_str());
  for (std::size_t i = 0; i < problems.kept(); ++i) log_warn(kFormat, problems.messages[i]);
  if (problems.count > problems.kept()) {
    log_warn("%zu more OFFLOAD_ variables are wrong; \"offload options\" lists what they take",
             problems.count - problems.kept());
  }
  if (options.strict && problems.bad_values > 0) {
    log_error(
        "an option's value is bad and OFFLOAD_STRICT=1: liboffload stays inactive; correct the "
        "value, or unset OFFLOAD_STRICT to run with the default");
  }
}

}  // namespace offload
