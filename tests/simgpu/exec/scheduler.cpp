// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/scheduler.h"

#include <algorithm>

namespace simgpu {

namespace {

constexpr int kVainQueriesForDemand = 4;

bool head_may_run(const Stream& stream, const std::function<bool(const Op&)>& can_start) {
  if (stream.running || stream.queue.empty()) return false;
  const Op& head = *stream.queue.front();
  return head.ready() && can_start(head);
}

// The stream whose head must run next so that `target` comes closer.
Stream* step_towards(Target target, const std::function<bool(const Op&)>& can_start,
                     std::vector<Stream*>& visited) {
  Stream* stream = target.stream;
  if (target.reached() || stream->running || stream->queue.empty()) return nullptr;
  if (std::find(visited.begin(), visited.end(), stream) != visited.end()) return nullptr;
  visited.push_back(stream);
  if (head_may_run(*stream, can_start)) return stream;
  const Record* record = stream->queue.front()->waits_for();
  if (record == nullptr || record->stream == nullptr) return nullptr;
  return step_towards({record->stream, record->number}, can_start, visited);
}

}  // namespace

Scheduler::Scheduler(ScheduleOption option)
    : option_(option), random_(option.seed), random_rest_(option.seed + 1) {}

Stream* Scheduler::pick(const std::vector<Stream*>& active,
                        const std::function<bool(const Op&)>& can_start) {
  if (option_.kind == ScheduleKind::kLate) return pick_late(active, can_start);
  if (option_.kind == ScheduleKind::kRandom) {
    Stream* chosen = nullptr;
    uint64_t seen = 0;
    for (Stream* stream : active) {
      if (!head_may_run(*stream, can_start)) continue;
      if (random_() % ++seen == 0) chosen = stream;
    }
    return chosen;
  }
  Stream* first = nullptr;
  for (Stream* stream : active) {
    if (!head_may_run(*stream, can_start)) continue;
    if (first == nullptr || stream->queue.front()->order < first->queue.front()->order) {
      first = stream;
    }
  }
  return first;
}

Stream* Scheduler::pick_late(const std::vector<Stream*>& active,
                             const std::function<bool(const Op&)>& can_start) {
  std::vector<Target> wanted;
  for (const Demand* demand : demands_) {
    wanted.insert(wanted.end(), demand->targets.begin(), demand->targets.end());
  }
  for (auto it = vain_queries_.begin(); it != vain_queries_.end();) {
    const Target target{it->first.first, it->first.second};
    if (target.reached()) {
      it = vain_queries_.erase(it);
      continue;
    }
    if (it->second >= kVainQueriesForDemand) wanted.push_back(target);
    ++it;
  }
  if (program_silent_) {
    for (Stream* stream : active) wanted.push_back({stream, stream->submitted});
  }
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const Target& a, const Target& b) { return a.stream->id > b.stream->id; });
  std::vector<Stream*> visited;
  for (const Target& target : wanted) {
    if (Stream* stream = step_towards(target, can_start, visited)) return stream;
  }
  return nullptr;
}

bool Scheduler::asked_in_vain(Target target) {
  if (option_.kind != ScheduleKind::kLate) return false;
  return ++vain_queries_[{target.stream, target.number}] == kVainQueriesForDemand;
}

bool Demand::is_met() const {
  return std::all_of(targets.begin(), targets.end(),
                     [](const Target& target) { return target.reached(); });
}

bool Scheduler::has_unmet() const {
  return std::any_of(demands_.begin(), demands_.end(),
                     [](const Demand* demand) { return !demand->is_met(); });
}

bool Scheduler::note_progress(const Stream& stream, int64_t now_ns) {
  bool met = false;
  for (Demand* demand : demands_) {
    for (const Target& target : demand->targets) {
      if (target.stream == &stream && target.number == stream.completed) {
        demand->clock.join(stream.clock);
      }
    }
    if (!demand->is_met()) continue;
    met = true;
    if (demand->met_ns < 0) demand->met_ns = now_ns;
  }
  return met;
}

bool Scheduler::wants_a_rest() {
  return option_.kind == ScheduleKind::kRandom && random_rest_() % 4 == 0;
}

}  // namespace simgpu
