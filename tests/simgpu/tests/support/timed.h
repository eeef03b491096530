// SPDX-License-Identifier: Apache-2.0
#pragma once
// Programs on clock virtual, for tests. Rates are one byte a nanosecond, so a copy or fill of a
// megabyte (10^6 bytes) takes a millisecond. What calls cost is in exec/costs.def: a copy or fill
// 2000 ns, an event record 800, a synchronisation 1000, most others 200.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {

inline constexpr size_t kMega = 1000000;

struct Timed {
  Outcome outcome;
  std::string report;
  // The number behind `key`, from `after` on.
  double value(const std::string& key, const std::string& after = "") const {
    size_t at = after.empty() ? 0 : report.find(after);
    at = at == std::string::npos ? at : report.find("\"" + key + "\": ", at);
    if (at == std::string::npos) {
      ADD_FAILURE() << key << " is not in " << report;
      return -1;
    }
    return std::strtod(report.c_str() + at + key.size() + 4, nullptr);
  }
};

inline Timed run_timed(const std::function<void()>& body, Environment environment = {}) {
  char path[] = "/tmp/simgpu-report-XXXXXX";
  const int fd = mkstemp(path);
  environment.insert({{"SIMGPU_CLOCK", "virtual"},
                      {"SIMGPU_REPORT", path},
                      {"SIMGPU_H2D", "1"},
                      {"SIMGPU_D2H", "1"},
                      {"SIMGPU_BOTH", "0.5"},
                      {"SIMGPU_BANDWIDTH", "1"}});
  Timed timed;
  timed.outcome = in_child(environment, body);
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  timed.report = text.str();
  close(fd);
  unlink(path);
  return timed;
}

// Everything that costs time has been done before the clock is looked at.
struct Scene {
  Scene()
      : p(allocate(16 * kMega)),
        q(allocate(16 * kMega)),
        host(allocate_pinned(16 * kMega)),
        back(allocate_pinned(16 * kMega)),
        a(new_stream()),
        b(new_stream()),
        begin(new_event(CU_EVENT_DEFAULT)),
        end_a(new_event(CU_EVENT_DEFAULT)),
        end_b(new_event(CU_EVENT_DEFAULT)) {
    cuMemsetD8(q, 1, 16 * kMega);
    cuCtxSynchronize();
  }
  Gpu gpu;
  CUdeviceptr p, q;
  void* host;
  void* back;
  CUstream a, b;
  CUevent begin, end_a, end_b;
};

// In nanoseconds; events keep whole ones, the API gives milliseconds as a float.
inline double between(CUevent from, CUevent to) {
  float milliseconds = 0;
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, from, to), CUDA_SUCCESS);
  return static_cast<double>(milliseconds) * 1e6;
}

}  // namespace simgpu::test
