// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engine/model/device.h"

#include <algorithm>
#include <utility>

#include "tests/unit/engine/model/failure.h"

namespace offload::model {

Queue* Device::add_queue(std::string name, bool is_lane) {
  queues_.push_back(std::make_unique<Queue>());
  queues_.back()->name = std::move(name);
  queues_.back()->is_lane = is_lane;
  queues_.back()->index = queues_.size() - 1;
  return queues_.back().get();
}

void Device::submit(Queue& queue, Item item) {
  ++queue.submitted;
  if (item.records != nullptr) {
    item.records->queue = &queue;
    item.records->number = queue.submitted;
  }
  if (keep_clocks) {
    queue.clock.resize(queues_.size());
    if (item.waits_for != nullptr) {
      const Clock& other = item.waits_for->after;
      for (size_t i = 0; i < other.size(); ++i) {
        queue.clock[i] = std::max(queue.clock[i], other[i]);
      }
    }
    queue.clock[queue.index] = queue.submitted;
    item.after = queue.clock;
    if (item.records != nullptr) item.records->after = queue.clock;
  }
  queue.items.push_back(std::move(item));
}

void Device::set_flag(int flag) {
  if (flags_.size() <= static_cast<size_t>(flag)) flags_.resize(static_cast<size_t>(flag) + 1);
  flags_[static_cast<size_t>(flag)] = true;
}

bool Device::can_run(const Queue& queue) const {
  if (queue.items.empty()) return false;
  const Item& head = queue.items.front();
  if (head.waits_for != nullptr) return head.waits_for->done;
  return head.flag < 0 || flag_set(head.flag);
}

void Device::run_head(Queue& queue) {
  const Item item = std::move(queue.items.front());
  queue.items.pop_front();
  ++time_;
  if (item.records != nullptr) {
    item.records->done = true;
    item.records->time = time_;
  }
  if (item.run) item.run();
}

const std::vector<Queue*>& Device::ready() {
  ready_.clear();
  for (const auto& queue : queues_) {
    if (can_run(*queue)) ready_.push_back(queue.get());
  }
  return ready_;
}

bool Device::force(const Mark& mark) {
  while (!mark.done) {
    Queue& queue = *mark.queue;
    if (queue.items.empty()) return false;  // lost with its context
    const std::shared_ptr<Mark> needed = queue.items.front().waits_for;
    if (needed != nullptr && !needed->done && !force(*needed)) return false;
    if (!can_run(queue)) return false;
    run_head(queue);
  }
  return true;
}

bool Device::run_until(const std::shared_ptr<Mark>& mark) {
  if (schedule_.lazy()) return force(*mark);
  while (!mark->done) {
    const std::vector<Queue*>& heads = ready();
    if (heads.empty()) return false;
    run_head(*heads[schedule_.pick(*this, heads)]);
  }
  return true;
}

void Device::run_all() {
  while (!ready().empty()) run_head(*ready_[schedule_.pick(*this, ready_)]);
}

void Device::drain(Queue& queue) {
  auto last = std::make_shared<Mark>();
  submit(queue, {.run = {}, .records = last, .waits_for = nullptr});
  if (!force(*last)) fail(Failure::Kind::kHang, "queue " + queue.name + " cannot go on");
}

bool Device::uses(Address at, uint64_t bytes) const {
  for (const auto& queue : queues_) {
    for (const Item& item : queue->items) {
      for (const Touch& touch : item.touches) {
        if (touch.at < at + bytes && at < touch.at + touch.bytes) return true;
      }
    }
  }
  return false;
}

std::string Device::dump() const {
  std::string text;
  for (const auto& queue : queues_) {
    text += queue->name + ": " + std::to_string(queue->items.size()) + " items";
    if (!queue->items.empty()) {
      const Item& head = queue->items.front();
      if (head.waits_for != nullptr) {
        text +=
            ", waits for " + head.waits_for->queue->name + (head.waits_for->done ? " (done)" : "");
      }
      if (head.flag >= 0) text += ", waits for flag " + std::to_string(head.flag);
    }
    text += "\n";
  }
  return text;
}

void Device::forget_work() {
  for (const auto& queue : queues_) queue->items.clear();
}

}  // namespace offload::model
