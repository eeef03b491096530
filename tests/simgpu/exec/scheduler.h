// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chooses which ready head of a stream runs next. fifo: the one submitted first. random: any, from
// a seed. late: only what a blocked host thread needs (or polls for in vain, or anything once the
// program has been silent for a while), the youngest stream first. Driver's lock.

#include <functional>
#include <list>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/exec/stream.h"

namespace simgpu {

// What one blocked host thread waits for; lives on its stack.
struct Demand {
  std::vector<Target> targets;
  VectorClock clock;    // what was finished when each target was reached
  int64_t met_ns = -1;  // clock virtual: when the last one was
  bool is_met() const;
};

class Scheduler {
 public:
  explicit Scheduler(ScheduleOption option);

  // A stream of `active` whose head may run now and passes `can_start`, or null.
  Stream* pick(const std::vector<Stream*>& active, const std::function<bool(const Op&)>& can_start);

  void add(Demand* demand) { demands_.push_back(demand); }
  void remove(Demand* demand) { demands_.remove(demand); }
  // The stream has come one operation further. True if some blocked thread now has all it waits
  // for.
  bool note_progress(const Stream& stream, int64_t now_ns);
  // Some blocked thread still lacks something.
  bool has_unmet() const;
  // A query for it came back "not ready". True when it now counts as a demand (the fourth time).
  bool asked_in_vain(Target target);

  bool late() const { return option_.kind == ScheduleKind::kLate; }
  // late: nothing was called for a while, so everything may run.
  void set_program_silent(bool silent) { program_silent_ = silent; }
  // random: true now and then, so that work piles up and there is a choice.
  bool wants_a_rest();

 private:
  Stream* pick_late(const std::vector<Stream*>& active,
                    const std::function<bool(const Op&)>& can_start);

  ScheduleOption option_;
  std::mt19937_64 random_;
  std::mt19937_64 random_rest_;  // apart, so that choices do not depend on how often it was asked
  std::list<Demand*> demands_;
  std::map<std::pair<Stream*, uint64_t>, int> vain_queries_;
  bool program_silent_ = false;
};

}  // namespace simgpu
