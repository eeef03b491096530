// SPDX-License-Identifier: Apache-2.0
#include "tests/model/gpu.h"

#include <algorithm>

namespace offload::model {

// Adds what the item needs to have run. False: something that the host has to do first.
bool Gpu::need(size_t index, uint32_t number) {
  const Queue& queue = *device_.queues()[index];
  const uint32_t first = first_number(queue);
  if (number < first || upto_[index] >= number) return true;
  const uint32_t from = std::max(first, upto_[index] + 1);
  upto_[index] = number;
  for (uint32_t n = from; n <= number; ++n) {
    const Item& item = queue.items[n - first];
    if (item.flag >= 0 && !device_.flag_set(item.flag)) return false;
    const Mark* mark = item.waits_for.get();
    if (mark != nullptr && !mark->done && !need(mark->queue->index, mark->number)) return false;
  }
  return true;
}

bool Gpu::can_reach(const Mark& mark) {
  upto_.assign(device_.queues().size(), 0);
  return mark.done ||
         (mark.number >= first_number(*mark.queue) && need(mark.queue->index, mark.number));
}

const std::vector<Queue*>& Gpu::heads_towards(const Mark& mark) {
  heads_.clear();
  return can_reach(mark) ? needed_heads() : heads_;
}

const std::vector<Queue*>& Gpu::heads_towards(const Queue& queue) {
  heads_.clear();
  upto_.assign(device_.queues().size(), 0);
  return need(queue.index, first_number(queue)) ? needed_heads() : heads_;
}

const std::vector<Queue*>& Gpu::heads() {
  upto_.assign(device_.queues().size(), 0);
  for (const auto& queue : device_.queues()) upto_[queue->index] = queue->submitted;
  return needed_heads();
}

void Gpu::find_work() {
  work_.clear();
  std::vector<Memory::Run> runs;
  for (const auto& queue : device_.queues()) {
    uint32_t number = first_number(*queue);
    for (const Item& item : queue->items) {
      if (item.run) {
        Work work{&item, queue->index, number, {}, false};
        for (const Touch& touch : item.touches) {
          work.anywhere |= !device_.memory().resolve(touch.at, touch.bytes, &runs);
          for (const Memory::Run& run : runs) {
            const auto begin = reinterpret_cast<uint64_t>(run.cells);
            work.places.push_back({begin, begin + run.count * sizeof(Cell), touch.writes});
          }
        }
        work_.push_back(std::move(work));
      }
      ++number;
    }
  }
}

bool Gpu::clash(const Work& a, const Work& b) {
  if (a.queue == b.queue) return false;
  const auto behind = [](const Work& later, const Work& earlier) {
    const Clock& clock = later.item->after;
    return earlier.queue < clock.size() && clock[earlier.queue] >= earlier.number;
  };
  if (behind(a, b) || behind(b, a)) return false;
  if (a.anywhere || b.anywhere) return true;
  for (const Place& one : a.places) {
    for (const Place& other : b.places) {
      if ((one.writes || other.writes) && one.begin < other.end && other.begin < one.end)
        return true;
    }
  }
  return false;
}

// What clashes with something needed may run before it, so it counts among the needed.
const std::vector<Queue*>& Gpu::needed_heads() {
  find_work();
  bool clashes = false;
  for (bool again = true; again;) {
    again = false;
    for (const Work& one : work_) {
      if (upto_[one.queue] < one.number) continue;
      for (const Work& other : work_) {
        if (!clash(one, other)) continue;
        clashes = true;
        if (upto_[other.queue] >= other.number) continue;
        need(other.queue, other.number);
        again = true;
      }
    }
  }
  heads_.clear();
  for (const auto& queue : device_.queues()) {
    if (queue->items.empty() || first_number(*queue) > upto_[queue->index]) continue;
    if (!device_.can_run(*queue)) continue;
    heads_.push_back(queue.get());
    if (!clashes) break;
  }
  return heads_;
}

void Gpu::step(Queue& queue) {
  ++steps_;
  const bool ran = static_cast<bool>(queue.items.front().run);
  device_.run_head(queue);
  while (ran && !queue.items.empty() && queue.items.front().records != nullptr) {
    device_.run_head(queue);
  }
  settle();
}

void Gpu::settle() {
  for (bool again = true; again;) {
    again = false;
    for (const auto& queue : device_.queues()) {
      while (!queue->items.empty() && device_.can_run(*queue)) {
        const Item& head = queue->items.front();
        if (head.waits_for == nullptr && head.flag < 0) break;
        device_.run_head(*queue);
        again = true;
      }
    }
  }
}

bool Gpu::idle() const {
  return std::all_of(device_.queues().begin(), device_.queues().end(),
                     [](const auto& queue) { return queue->items.empty(); });
}

uint64_t Gpu::digest() const {
  uint64_t sum = 0;
  for (const auto& queue : device_.queues()) {
    sum = mix(sum, queue->submitted);
    for (const Item& item : queue->items) {
      sum = mix(sum, item.run ? item.token : 1);
      sum = mix(sum, item.records != nullptr ? 2 : static_cast<uint64_t>(item.flag + 3));
      const Mark* mark = item.waits_for.get();
      if (mark != nullptr)
        sum = mix(mix(sum, mark->queue->index), mark->number * 2 + (mark->done ? 1 : 0));
    }
  }
  return sum;
}

}  // namespace offload::model
