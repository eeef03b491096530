// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/host_knowledge.h"

#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/driver/thread_state.h"

namespace simgpu {

namespace {

void join_into(ClockRef& clock, const VectorClock& news) {
  if (options().check == CheckMode::kOff) return;
  if (clock != nullptr && clock->covers(news)) return;
  auto joined = clock ? std::make_shared<VectorClock>(*clock) : std::make_shared<VectorClock>();
  joined->join(news);
  clock = std::move(joined);
}

}  // namespace

ClockRef& HostKnowledge::mine() {
  return options().knowledge == Knowledge::kOwn ? thread_state().knowledge : shared_;
}

const ClockRef& HostKnowledge::current() {
  return mine();
}

void HostKnowledge::learn(const VectorClock& news) {
  join_into(mine(), news);
}

void HostKnowledge::learn_by_all(const VectorClock& news) {
  if (options().knowledge == Knowledge::kShared) join_into(shared_, news);
}

}  // namespace simgpu
