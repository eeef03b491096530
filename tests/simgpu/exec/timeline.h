// SPDX-License-Identifier: Apache-2.0
#pragma once
// Time. With the clock off operations take no modelled time. On the others each one occupies its
// resource (a device's compute units, or its link in one direction) for as long as a GPU with the
// given rates would take; the two directions of a link slow each other down while both run. One
// operation per resource at a time. Whose time it is, the caller says. Driver's lock.

#include <cstdint>
#include <vector>

#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/exec/op.h"

namespace simgpu {

struct Rates {
  double h2d = 0;   // bytes/s
  double d2h = 0;   // bytes/s
  double both = 1;  // factor while both links are busy
  double drop = 1;  // factor from then on
  int64_t drop_at_ns = INT64_MAX;
};

class Timeline {
 public:
  Timeline(bool timed, Rates rates) : timed_(timed), rates_(rates) {}

  static int64_t wall_ns();

  bool timed() const { return timed_; }
  bool is_free(Resource resource, int device = 0) const;
  void start(Stream* stream, Cost cost, int64_t now_ns);
  // A stream whose operation has reached its end by now (and stops occupying its resource), or
  // null.
  Stream* take_finished(int64_t now_ns);
  // How long each resource was occupied by what has finished.
  int64_t busy_ns(Resource resource, int device) const;
  // When the next one ends if nothing else starts; negative if nothing runs.
  int64_t next_end_ns() const;

 private:
  struct Running {
    Stream* stream;
    Resource resource;
    double remaining;  // bytes on links, seconds of compute
    int device;
    int64_t since_ns;
  };
  void advance(int64_t now_ns);
  void advance_evenly(int64_t now_ns);
  double rate(const Running& running) const;

  bool timed_;
  Rates rates_;
  std::vector<Running> running_;
  int64_t updated_ns_ = 0;
  int64_t busy_ns_[kMaxDevices][4] = {};
};

}  // namespace simgpu
