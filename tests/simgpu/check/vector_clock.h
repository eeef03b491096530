// SPDX-License-Identifier: Apache-2.0
#pragma once
// A vector clock over streams: at(agent) is the number of the last operation of that stream which
// is known to be finished. Plain value.

#include <cstdint>
#include <memory>
#include <vector>

namespace simgpu {

class VectorClock {
 public:
  uint64_t at(uint32_t agent) const { return agent < last_.size() ? last_[agent] : 0; }
  bool covers(uint32_t agent, uint64_t number) const { return at(agent) >= number; }
  bool covers(const VectorClock& other) const {
    for (uint32_t i = 0; i < other.last_.size(); ++i) {
      if (at(i) < other.last_[i]) return false;
    }
    return true;
  }
  void raise(uint32_t agent, uint64_t number) {
    if (agent >= last_.size()) last_.resize(agent + 1, 0);
    if (last_[agent] < number) last_[agent] = number;
  }
  void join(const VectorClock& other) {
    if (other.last_.size() > last_.size()) last_.resize(other.last_.size(), 0);
    for (uint32_t i = 0; i < other.last_.size(); ++i) {
      if (last_[i] < other.last_[i]) last_[i] = other.last_[i];
    }
  }
  // Forgets what it says about `agent` beyond `number`.
  void lower(uint32_t agent, uint64_t number) {
    if (agent < last_.size() && last_[agent] > number) last_[agent] = number;
  }
  size_t size() const { return last_.size(); }

 private:
  std::vector<uint64_t> last_;
};

// A clock that several hold and nobody changes.
using ClockRef = std::shared_ptr<const VectorClock>;

}  // namespace simgpu
