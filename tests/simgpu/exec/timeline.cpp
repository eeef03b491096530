// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/timeline.h"

#include <time.h>

#include <algorithm>
#include <cmath>

namespace simgpu {

int64_t Timeline::wall_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

bool Timeline::is_free(Resource resource) const {
  return std::none_of(running_.begin(), running_.end(),
                      [resource](const Running& r) { return r.resource == resource; });
}

double Timeline::rate(Resource resource) const {
  if (resource == Resource::kCompute) return 1;
  const bool both = !is_free(Resource::kHostToDevice) && !is_free(Resource::kDeviceToHost);
  const double alone = resource == Resource::kHostToDevice ? rates_.h2d : rates_.d2h;
  return both ? alone * rates_.both : alone;
}

void Timeline::advance(int64_t now_ns) {
  const double seconds = static_cast<double>(now_ns - updated_ns_) * 1e-9;
  for (Running& running : running_) running.remaining -= seconds * rate(running.resource);
  updated_ns_ = now_ns;
}

void Timeline::start(Stream* stream, Cost cost, int64_t now_ns) {
  advance(now_ns);
  const bool compute = cost.resource == Resource::kCompute;
  running_.push_back({stream, cost.resource, compute ? cost.seconds : cost.bytes});
}

Stream* Timeline::take_finished(int64_t now_ns) {
  advance(now_ns);
  for (auto it = running_.begin(); it != running_.end(); ++it) {
    // Half a nanosecond of slack, for the rounding of next_end_ns.
    if (it->remaining > 0.5e-9 * rate(it->resource)) continue;
    Stream* stream = it->stream;
    running_.erase(it);
    return stream;
  }
  return nullptr;
}

int64_t Timeline::next_end_ns() const {
  int64_t next = -1;
  for (const Running& running : running_) {
    const double seconds = std::max(0.0, running.remaining) / rate(running.resource);
    const int64_t end = updated_ns_ + static_cast<int64_t>(std::ceil(seconds * 1e9));
    if (next < 0 || end < next) next = end;
  }
  return next;
}

}  // namespace simgpu
