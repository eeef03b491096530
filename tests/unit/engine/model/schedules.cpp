// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engine/model/schedules.h"

#include <algorithm>

namespace offload::model {

void Eager::at(Point, Device& device) {
  while (!device.ready().empty()) device.run_head(*device.ready()[0]);
}

// The lanes are the first two queues, out before in.
size_t Late::pick(Device&, const std::vector<Queue*>& ready) {
  const size_t last = ready.size() - 1;
  switch (first_) {
    case First::kUsers:
      for (size_t i = 0; i <= last; ++i) {
        if (!ready[i]->is_lane) return i;
      }
      return last;
    case First::kLatestUsers:
      return last;
    case First::kOut:
      return 0;
    case First::kIn:
      return ready[0]->is_lane && last > 0 && ready[1]->is_lane ? 1 : 0;
    case First::kNeeded:
      return 0;
  }
  return 0;
}

Random::Random(uint64_t seed) : random_(seed) {
  constexpr uint32_t kRates[] = {0, 20, 100, 300, 600};
  per_thousand_ = kRates[random_() % 5];
  slow_queues_ = random_() % 3 == 0 ? 0 : static_cast<uint32_t>(random_());
}

void Random::at(Point, Device& device) {
  while (random_() % 1000 < per_thousand_) {
    const std::vector<Queue*>& ready = device.ready();
    if (ready.empty()) return;
    const size_t index = random_() % ready.size();
    if ((slow_queues_ >> (index % 32) & 1) != 0 && random_() % 4 != 0) continue;
    device.run_head(*ready[index]);
  }
}

size_t Random::pick(Device&, const std::vector<Queue*>& ready) {
  return random_() % ready.size();
}

uint32_t Exhaustive::choose(uint32_t count) {
  if (count == 1) return 0;
  if (depth_ == trail_.size()) trail_.push_back({0, count});
  return trail_[depth_++].chosen;
}

void Exhaustive::at(Point point, Device& device) {
  if (point != Point::kStep && point != Point::kUnmap) return;
  for (;;) {
    const std::vector<Queue*>& ready = device.ready();
    const uint32_t chosen = choose(static_cast<uint32_t>(ready.size()) + 1);
    if (chosen == 0) return;
    device.run_head(*ready[chosen - 1]);
  }
}

size_t Exhaustive::pick(Device&, const std::vector<Queue*>& ready) {
  return choose(static_cast<uint32_t>(ready.size()));
}

bool Exhaustive::next() {
  trail_.resize(std::min(depth_, trail_.size()));
  depth_ = 0;
  while (!trail_.empty() && trail_.back().chosen + 1 == trail_.back().count) trail_.pop_back();
  if (trail_.empty()) return false;
  ++trail_.back().chosen;
  return true;
}

std::unique_ptr<Schedule> make_schedule(const std::string& name) {
  if (name == "eager") return std::make_unique<Eager>();
  if (name == "users") return std::make_unique<Late>(Late::First::kUsers);
  if (name == "latest-users") return std::make_unique<Late>(Late::First::kLatestUsers);
  if (name == "out") return std::make_unique<Late>(Late::First::kOut);
  if (name == "in") return std::make_unique<Late>(Late::First::kIn);
  if (name == "needed") return std::make_unique<Late>(Late::First::kNeeded);
  return std::make_unique<Random>(std::stoull(name.substr(name.find(':') + 1)));
}

std::vector<std::string> schedule_names(uint64_t seeds) {
  std::vector<std::string> names = {"eager", "users", "latest-users", "out", "in", "needed"};
  for (uint64_t seed = 1; seed <= seeds; ++seed) names.push_back("random:" + std::to_string(seed));
  return names;
}

}  // namespace offload::model
