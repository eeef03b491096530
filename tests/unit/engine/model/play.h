// SPDX-License-Identifier: Apache-2.0
#pragma once
// Plays a small program under every schedule.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/unit/engine/model/schedules.h"
#include "tests/unit/engine/model/world.h"

namespace offload::model {

using Program = std::function<void(World&)>;

// Without the engine's own books, which may notice a broken rule before the program does.
struct Play {
  uint64_t seeds = 60;
  uint64_t orders = 400;
  bool check_books = true;
};

struct Outcome {
  uint64_t runs = 0;
  uint64_t failures = 0;
  std::string schedule;  // of the first failure
  Failure failure;       // the first
};

// Under the named schedules (`seeds` random ones), and under every order there is (up to `orders`
// of them). Stops at the first failure.
Outcome play(const Settings& settings, const Program& program, const Play& how = {});

// A test's whole body: the program must hold under all schedules.
void expect_holds(const Settings& settings, const Program& program, const Play& how = {});

}  // namespace offload::model
