// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/log.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "profiler/base/own_file.h"
#include "profiler/base/paths.h"

namespace offload {
namespace {

constexpr std::size_t kLineBytes = 1024;
constexpr std::size_t kPlaces =
    128;  // distinct messages whose repeats are counted; later ones are not capped

enum class FileState : int { kNone, kWanted, kOpening, kOpen };

struct Place {
  std::atomic<const char*> format;
  std::atomic<int> times;
};

constinit std::atomic<LogLevel> level_limit{LogLevel::kWarn};
constinit std::atomic<LogSink> replaced_sink{nullptr};
constinit std::atomic<FileState> file_state{FileState::kNone};
constinit const char* file_pattern = nullptr;
constinit OwnFile file;
constinit Place places[kPlaces];
__attribute__((tls_model("initial-exec"))) constinit thread_local bool inside = false;

bool is_control(char c) {
  return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
}

// How often this message was said before. A format string stands for the place that holds it.
int times_said(const char* format) {
  for (Place& place : places) {
    const char* known = place.format.load(std::memory_order_relaxed);
    if (known == nullptr &&
        place.format.compare_exchange_strong(known, format, std::memory_order_relaxed)) {
      known = format;
    }
    if (known == format) return place.times.fetch_add(1, std::memory_order_relaxed);
  }
  return 0;
}

void open_file() {
  FileState wanted = FileState::kWanted;
  if (!file_state.compare_exchange_strong(wanted, FileState::kOpening)) return;
  char taken[kPathBytes];
  int descriptor = create_from_pattern(file_pattern, taken);
  if (descriptor < 0) {
    int cause = errno;
    char line[256];
    int length =
        std::snprintf(line, sizeof line,
                      "liboffload[%d]: warn: log file %.100s cannot be made (%.80s); messages "
                      "go to stderr; check OFFLOAD_LOG_FILE\n",
                      static_cast<int>(getpid()), file_pattern, file_error_text(cause));
    write_to_stderr({line, static_cast<std::size_t>(length)});
    file_state.store(FileState::kNone);
    return;
  }
  file = OwnFile(descriptor);
  file_state.store(FileState::kOpen, std::memory_order_release);
  char wanted_path[kPathBytes];
  if (log_enabled(LogLevel::kInfo) && expand_pattern(file_pattern, wanted_path) &&
      std::strcmp(wanted_path, taken) != 0) {
    char line[256];
    const int length =
        std::snprintf(line, sizeof line, "liboffload[%d]: info: messages are in %.200s\n",
                      static_cast<int>(getpid()), taken);
    write_to_stderr({line, static_cast<std::size_t>(length)});
  }
}

void emit(std::string_view line) {
  if (LogSink sink = replaced_sink.load(std::memory_order_acquire)) return sink(line);
  if (file_state.load(std::memory_order_relaxed) == FileState::kWanted) open_file();
  bool to_file = file_state.load(std::memory_order_acquire) == FileState::kOpen;
  if (!to_file || !file.write(line)) write_to_stderr(line);
}

void say(LogLevel level, const char* format, std::va_list arguments) {
  if (!log_enabled(level) || inside) return;
  int said = level <= LogLevel::kWarn ? times_said(format) : 0;
  if (said >= kRepeats) return;
  inside = true;
  int kept = errno;
  char line[kLineBytes];
  std::string_view name = word(level);
  int head = std::snprintf(line, sizeof line, "liboffload[%d]: %.*s: ", static_cast<int>(getpid()),
                           static_cast<int>(name.size()), name.data());
  std::size_t used = static_cast<std::size_t>(head);
  errno = kept;  // for %m
  int body = std::vsnprintf(line + used, sizeof line - used, format, arguments);
  used += body > 0 ? static_cast<std::size_t>(body) : 0;
  used = std::min(used, sizeof line - 1);
  // Names of programs and files may hold anything, and a terminal would obey it.
  std::replace_if(line + head, line + used, is_control, '?');
  constexpr std::string_view kLast = " (not said again)";
  std::size_t tail = (said + 1 == kRepeats ? kLast.size() : 0) + 1;
  if (used > sizeof line - tail) used = sizeof line - tail;
  if (said + 1 == kRepeats) used += kLast.copy(line + used, kLast.size());
  line[used++] = '\n';
  emit({line, used});
  errno = kept;
  inside = false;
}

}  // namespace

void set_log_level(LogLevel level) {
  level_limit.store(level, std::memory_order_relaxed);
}

bool log_enabled(LogLevel level) {
  return level <= level_limit.load(std::memory_order_relaxed);
}

void set_log_file(const char* pattern) {
  file_pattern = pattern;
  bool wanted = pattern != nullptr && pattern[0] != '\0';
  file_state.store(wanted ? FileState::kWanted : FileState::kNone);
}

void set_log_sink(LogSink sink) {
  replaced_sink.store(sink, std::memory_order_release);
}

void reset_log_repeats() {
  for (Place& place : places) place.times.store(0, std::memory_order_relaxed);
}

#define OFFLOAD_SAY(name, level)       \
  void name(const char* format, ...) { \
    std::va_list arguments;            \
    va_start(arguments, format);       \
    say(level, format, arguments);     \
    va_end(arguments);                 \
  }
OFFLOAD_SAY(log_error, LogLevel::kError)
OFFLOAD_SAY(log_warn, LogLevel::kWarn)
OFFLOAD_SAY(log_info, LogLevel::kInfo)
OFFLOAD_SAY(log_debug, LogLevel::kDebug)
OFFLOAD_SAY(log_trace, LogLevel::kTrace)
#undef OFFLOAD_SAY

}  // namespace offload
