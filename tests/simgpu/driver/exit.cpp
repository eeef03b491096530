// SPDX-License-Identifier: Apache-2.0
// The end of the process: the report file, and the exit status of a run in which the checker found
// something. A destructor of the library, so that it comes after all exit handlers of the program
// and of what was preloaded.
#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "tests/simgpu/check/report.h"
#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/driver/say.h"
#include "tests/simgpu/driver/statistics.h"
#include "tests/simgpu/exec/engine.h"
#include "tests/simgpu/memory/machine.h"

namespace simgpu {
namespace {

double seconds(int64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

// Where time went. All are whole nanoseconds, so the same run prints the same digits.
void write_times(std::FILE* file) {
  const Engine& clock = engine();
  if (clock.is_virtual()) {
    std::fprintf(file, ", \"simulated_seconds\": %.9f", seconds(clock.simulated_ns()));
  }
  std::fprintf(file, ", \"devices\": [");
  for (int device = 0; device < options().devices; ++device) {
    const auto busy = [&](Resource resource) {
      return seconds(clock.timeline().busy_ns(resource, device));
    };
    std::fprintf(file,
                 "%s{\"compute_busy_seconds\": %.9f, \"h2d_busy_seconds\": %.9f, "
                 "\"d2h_busy_seconds\": %.9f}",
                 device ? ", " : "", busy(Resource::kCompute), busy(Resource::kHostToDevice),
                 busy(Resource::kDeviceToHost));
  }
  std::fprintf(file, "], \"streams\": [");
  const char* separator = "";
  for (const auto& [id, busy] : clock.stream_busy_ns()) {
    std::fprintf(file, "%s{\"id\": %llu, \"busy_seconds\": %.9f}", separator,
                 static_cast<unsigned long long>(id), seconds(busy));
    separator = ", ";
  }
  std::fprintf(file, "], \"wait_seconds\": {");
  separator = "";
  for (const auto& [cause, waited] : clock.waits_ns()) {
    std::fprintf(file, "%s\"%s\": %.9f", separator, cause.c_str(), seconds(waited));
    separator = ", ";
  }
  std::fprintf(file, "}");
}

void write_report() {
  std::string path = options().report;
  if (path.empty()) return;
  if (const size_t at = path.find("%p"); at != std::string::npos) {
    path.replace(at, 2, std::to_string(getpid()));
  }
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return say("cannot write the report to %s", path.c_str());
  std::fprintf(file, "{");
  const Statistics& counts = statistics();
#define SIMGPU_STATISTIC(name) \
  std::fprintf(file, "\"" #name "\": %llu, ", static_cast<unsigned long long>(counts.name));
#include "tests/simgpu/driver/statistics.def"
#undef SIMGPU_STATISTIC
  std::fprintf(file, "\"peak_bytes\": [");
  for (int device = 0; device < options().devices; ++device) {
    std::fprintf(file, "%s%zu", device ? ", " : "", device_memory(device).peak());
  }
  std::fprintf(file, "], \"host_peak_bytes\": %zu, \"checker_reports\": %llu, ",
               host_memory().peak(), static_cast<unsigned long long>(report_count()));
  std::fprintf(file, "\"checker\": \"%s\"",
               options().check == CheckMode::kOff ? "off"
               : report_count() == 0              ? "silent"
                                                  : "reported");
  if (options().clock != ClockKind::kOff) write_times(file);
  std::fprintf(file, "}\n");
  std::fclose(file);
}

__attribute__((destructor)) void at_the_end() {
  if (driver_status() != CUDA_SUCCESS) return;
  {
    // Another thread may hold the lock for good; the report must not hang on it.
    const Lock lock(driver_mutex(), std::try_to_lock);
    write_report();
    deinitialize_driver();
  }
  if (report_count() == 0) return;
  say("check: %llu reports; the exit status is %d", static_cast<unsigned long long>(report_count()),
      kReportExitStatus);
  std::fflush(nullptr);
  _exit(kReportExitStatus);
}

}  // namespace
}  // namespace simgpu
