// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the modelled GPU gets on while all its orders are explored. An order matters only where two
// pieces of work that no event orders touch the same memory, one of them writing; elsewhere one
// order stands for all (README.md says what that rests on). A step runs one kernel or copy and the
// events recorded right behind it; satisfied waits cost no step.

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/unit/engine/model/device.h"

namespace offload::model {

class Gpu {
 public:
  explicit Gpu(Device& device) : device_(device) {}

  // Whether the GPU gets there without the host.
  bool can_reach(const Mark& mark);
  // The queues whose head may run next on the way to `mark`: one, or all among which the order
  // matters. Empty: it cannot get there.
  const std::vector<Queue*>& heads_towards(const Mark& mark);
  // The same on the way to the end of all, and to room in `queue`.
  const std::vector<Queue*>& heads();
  const std::vector<Queue*>& heads_towards(const Queue& queue);
  void step(Queue& queue);
  // Waits that are satisfied go.
  void settle();
  bool idle() const;
  uint64_t digest() const;
  uint64_t steps() const { return steps_; }

 private:
  struct Place {
    uint64_t begin;
    uint64_t end;
    bool writes;
  };
  struct Work {
    const Item* item;
    size_t queue;
    uint32_t number;
    std::vector<Place> places;
    bool anywhere = false;  // an address shows nothing
  };
  bool need(size_t queue, uint32_t number);
  const std::vector<Queue*>& needed_heads();
  void find_work();
  static bool clash(const Work& a, const Work& b);
  uint32_t first_number(const Queue& queue) const {
    return queue.submitted - static_cast<uint32_t>(queue.items.size()) + 1;
  }

  Device& device_;
  std::vector<uint32_t> upto_;  // by queue: the items up to this number are needed
  std::vector<Work> work_;
  std::vector<Queue*> heads_;
  uint64_t steps_ = 0;
};

}  // namespace offload::model
