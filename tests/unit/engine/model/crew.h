// SPDX-License-Identifier: Apache-2.0
#pragma once
// Host threads that are played one at a time: real threads that hand a baton to each other, at
// calls that hold no lock and where one waits for another. The order is chosen by a seed, so that
// it can be replayed.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tests/unit/engine/model/failure.h"

namespace offload::model {

class Crew {
 public:
  // Runs the bodies until all have returned. Throws the first Failure; the others are unwound.
  void run(const std::vector<std::function<void()>>& bodies, uint64_t seed);
  bool running() const { return running_; }
  // Which body is being played; 0 outside run().
  size_t current() const { return current_; }
  // Another may go on here.
  void yield();
  // This one cannot go on before another does something. False: nobody can, or nobody is there.
  bool give_way();

 private:
  void body(size_t index, const std::function<void()>& what);
  void hand_to(size_t next, std::unique_lock<std::mutex>& lock);
  size_t other();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::mt19937_64 random_;
  std::vector<bool> ended_;
  size_t current_ = 0;
  bool running_ = false;
  bool failed_ = false;
  Failure failure_;
  uint32_t in_vain_ = 0;
};

}  // namespace offload::model
