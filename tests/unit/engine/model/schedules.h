// SPDX-License-Identifier: Apache-2.0
#pragma once
// The orders in which a modelled GPU runs its queues.

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/engine/model/device.h"

namespace offload::model {

// Everything runs as soon as it can: the host is never ahead.
class Eager final : public Schedule {
 public:
  void at(Point point, Device& device) override;
  size_t pick(Device&, const std::vector<Queue*>&) override { return 0; }
};

// Nothing runs before the host waits; then queues in a fixed order of preference, or only what the
// host waits for.
class Late final : public Schedule {
 public:
  enum class First : uint8_t { kUsers, kLatestUsers, kOut, kIn, kNeeded };
  explicit Late(First first) : first_(first) {}
  size_t pick(Device& device, const std::vector<Queue*>& ready) override;
  bool lazy() const override { return first_ == First::kNeeded; }

 private:
  First first_;
};

// A few heads, chosen by chance, at every call. `busy`: how many run for each call, at most; some
// queues are slower than others.
class Random final : public Schedule {
 public:
  explicit Random(uint64_t seed);
  void at(Point point, Device& device) override;
  size_t pick(Device& device, const std::vector<Queue*>& ready) override;

 private:
  std::mt19937_64 random_;
  uint32_t per_thousand_;
  uint32_t slow_queues_;  // a bit for each of the first 32 queues
};

// Every order there is, of programs with a few steps: choices are made between steps and before
// an address is unmapped. next() goes to the next order; false: all were seen.
class Exhaustive final : public Schedule {
 public:
  void at(Point point, Device& device) override;
  size_t pick(Device& device, const std::vector<Queue*>& ready) override;
  bool next();

 private:
  struct Choice {
    uint32_t chosen;
    uint32_t count;
  };
  uint32_t choose(uint32_t count);
  std::vector<Choice> trail_;
  size_t depth_ = 0;
};

// A name for each, so that a failure can be replayed: eager, users, latest-users, out, in, needed,
// random:SEED.
std::unique_ptr<Schedule> make_schedule(const std::string& name);
// eager, the late ones, and `seeds` random ones.
std::vector<std::string> schedule_names(uint64_t seeds);

}  // namespace offload::model
