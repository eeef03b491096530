// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/driver/say.h"

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace simgpu {

void say(const char* format, ...) {
  char line[2000] = "simgpu: ";
  constexpr int kPrefix = 8;
  va_list arguments;
  va_start(arguments, format);
  int length = std::vsnprintf(line + kPrefix, sizeof line - kPrefix - 1, format, arguments);
  va_end(arguments);
  length = kPrefix + std::clamp(length, 0, static_cast<int>(sizeof line) - kPrefix - 2);
  line[length++] = '\n';
  // One write, so that lines of several threads and processes do not mix.
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line, static_cast<size_t>(length));
}

}  // namespace simgpu
