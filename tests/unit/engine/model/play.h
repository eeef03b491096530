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

struct Outcome {
  uint64_t runs = 0;
  uint64_t failures = 0;
  std::string schedule;  // of the first failure
  Failure failure;       // the first
};

// Under the named schedules, and under every order there is (up to `most` of them). Stops at the
// first failure unless `all`.
Outcome play(const Settings& settings, const Program& program, uint64_t seeds = 60,
             uint64_t most = 400);

// A test's whole body: the program must hold under all schedules.
void expect_holds(const Settings& settings, const Program& program, uint64_t seeds = 60,
                  uint64_t most = 400);

}  // namespace offload::model
