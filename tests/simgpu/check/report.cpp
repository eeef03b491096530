// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/check/report.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/driver/say.h"

namespace simgpu {

namespace {
constexpr uint64_t kPrintedReports = 20;
std::atomic<uint64_t> reports{0};
}  // namespace

void report(const std::string& text) {
  const uint64_t count = ++reports;
  if (count <= kPrintedReports) {
    std::string block = "simgpu: check: " + text + "\n";
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, block.data(), block.size());
    if (count == kPrintedReports) say("check: further reports are only counted");
  }
  if (options().check == CheckMode::kAbort) std::abort();
}

uint64_t report_count() {
  return reports.load();
}

}  // namespace simgpu
