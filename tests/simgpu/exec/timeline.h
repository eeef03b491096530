// SPDX-License-Identifier: Apache-2.0
#pragma once
// Time. With the clock off operations take no modelled time. With the real clock each one occupies
// its resource (the compute units, or the link in one direction) for as long as a GPU with the
// given rates would take; links slow each other down while both directions run. One operation per
// resource at a time. Driver's lock.

#include <cstdint>
#include <vector>

#include "tests/simgpu/exec/op.h"

namespace simgpu {

struct Rates {
  double h2d = 0;   // bytes/s
  double d2h = 0;   // bytes/s
  double both = 1;  // factor while both links are busy
};

class Timeline {
 public:
  Timeline(bool timed, Rates rates) : timed_(timed), rates_(rates) {}

  static int64_t wall_ns();

  bool timed() const { return timed_; }
  bool is_free(Resource resource) const;
  void start(Stream* stream, Cost cost, int64_t now_ns);
  // A stream whose operation has reached its end by now (and stops occupying its resource), or
  // null.
  Stream* take_finished(int64_t now_ns);
  // When the next one ends if nothing else starts; negative if nothing runs.
  int64_t next_end_ns() const;

 private:
  struct Running {
    Stream* stream;
    Resource resource;
    double remaining;  // bytes on links, seconds of compute
  };
  void advance(int64_t now_ns);
  double rate(Resource resource) const;

  bool timed_;
  Rates rates_;
  std::vector<Running> running_;
  int64_t updated_ns_ = 0;
};

}  // namespace simgpu
