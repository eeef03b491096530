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
#include "tests/simgpu/memory/machine.h"

namespace simgpu {
namespace {

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
  std::fprintf(file, "], \"host_peak_bytes\": %zu, \"checker_reports\": %llu}\n",
               host_memory().peak(), static_cast<unsigned long long>(report_count()));
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
