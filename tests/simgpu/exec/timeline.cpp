// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/timeline.h"

#include <time.h>

#include <algorithm>
#include <cmath>

#include "tests/simgpu/exec/stream.h"

namespace simgpu {

int64_t Timeline::wall_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

bool Timeline::is_free(Resource resource, int device) const {
  return std::none_of(running_.begin(), running_.end(), [=](const Running& r) {
    return r.resource == resource && r.device == device;
  });
}

double Timeline::rate(const Running& running) const {
  if (running.resource == Resource::kCompute) return 1;
  const bool both = !is_free(Resource::kHostToDevice, running.device) &&
                    !is_free(Resource::kDeviceToHost, running.device);
  double rate = running.resource == Resource::kHostToDevice ? rates_.h2d : rates_.d2h;
  if (both) rate *= rates_.both;
  return updated_ns_ >= rates_.drop_at_ns ? rate * rates_.drop : rate;
}

void Timeline::advance_evenly(int64_t now_ns) {
  const double seconds = static_cast<double>(now_ns - updated_ns_) * 1e-9;
  for (Running& running : running_) running.remaining -= seconds * rate(running);
  updated_ns_ = now_ns;
}

void Timeline::advance(int64_t now_ns) {
  if (updated_ns_ < rates_.drop_at_ns && rates_.drop_at_ns < now_ns) {
    advance_evenly(rates_.drop_at_ns);
  }
  advance_evenly(now_ns);
}

void Timeline::start(Stream* stream, Cost cost, int64_t now_ns) {
  advance(now_ns);
  const bool compute = cost.resource == Resource::kCompute;
  running_.push_back(
      {stream, cost.resource, compute ? cost.seconds : cost.bytes, stream->device, now_ns});
}

Stream* Timeline::take_finished(int64_t now_ns) {
  advance(now_ns);
  for (auto it = running_.begin(); it != running_.end(); ++it) {
    // Half a nanosecond of slack, for the rounding of next_end_ns.
    if (it->remaining > 0.5e-9 * rate(*it)) continue;
    Stream* stream = it->stream;
    const int64_t busy = now_ns - it->since_ns;
    busy_ns_[it->device][static_cast<int>(it->resource)] += busy;
    stream->busy_ns += busy;
    running_.erase(it);
    return stream;
  }
  return nullptr;
}

int64_t Timeline::busy_ns(Resource resource, int device) const {
  return busy_ns_[device][static_cast<int>(resource)];
}

int64_t Timeline::next_end_ns() const {
  int64_t next = -1;
  for (const Running& running : running_) {
    double left = std::max(0.0, running.remaining);
    double speed = rate(running);
    int64_t from = updated_ns_;
    if (from < rates_.drop_at_ns && running.resource != Resource::kCompute) {
      const double before = static_cast<double>(rates_.drop_at_ns - from) * 1e-9 * speed;
      if (before < left) {
        left -= before;
        speed *= rates_.drop;
        from = rates_.drop_at_ns;
      }
    }
    const int64_t end = from + static_cast<int64_t>(std::ceil(left / speed * 1e9));
    if (next < 0 || end < next) next = end;
  }
  return next;
}

}  // namespace simgpu
