// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engine/model/crew.h"

namespace offload::model {

namespace {
// So many times in a row nobody got on: it is a hang.
constexpr uint32_t kHang = 300;
struct Unwind {};
}  // namespace

void Crew::run(const std::vector<std::function<void()>>& bodies, uint64_t seed) {
  random_.seed(seed);
  ended_.assign(bodies.size(), false);
  current_ = 0;
  failed_ = false;
  in_vain_ = 0;
  running_ = true;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < bodies.size(); ++i) {
    threads.emplace_back([this, i, &bodies] { body(i, bodies[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  running_ = false;
  current_ = 0;
  if (failed_) throw Failure(failure_);
}

void Crew::body(size_t index, const std::function<void()>& what) {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return current_ == index || failed_; });
  }
  bool failed = false;
  Failure met;
  try {
    if (current_ == index) what();
  } catch (const Failure& failure) {
    met = failure;
    failed = true;
  } catch (const Unwind&) {
  }
  const std::unique_lock<std::mutex> lock(mutex_);
  if (failed && !failed_) {
    failure_ = met;
    failed_ = true;
  }
  ended_[index] = true;
  current_ = other();
  changed_.notify_all();
}

// Another that has not ended; itself if there is none.
size_t Crew::other() {
  const size_t count = ended_.size();
  const size_t first = random_() % count;
  for (size_t i = 0; i < count; ++i) {
    const size_t index = (first + i) % count;
    if (index != current_ && !ended_[index]) return index;
  }
  return current_;
}

void Crew::hand_to(size_t next, std::unique_lock<std::mutex>& lock) {
  const size_t self = current_;
  if (next == self) return;
  current_ = next;
  changed_.notify_all();
  changed_.wait(lock, [&] { return current_ == self || failed_; });
  // After a failure all unwind at once, in any order: what they touch is given up anyway, but not
  // by two at a time.
  if (failed_) {
    throw Unwind{};
  }
}

void Crew::yield() {
  in_vain_ = 0;
  if (!running_ || random_() % 3 != 0) return;
  std::unique_lock<std::mutex> lock(mutex_);
  hand_to(other(), lock);
}

bool Crew::give_way() {
  if (!running_ || ++in_vain_ > kHang) return false;
  std::unique_lock<std::mutex> lock(mutex_);
  hand_to(other(), lock);
  return true;
}

}  // namespace offload::model
