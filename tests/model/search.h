// SPDX-License-Identifier: Apache-2.0
#pragma once
// All that can happen in a program: depth first over the choices of a stage, which is put back
// where it was for each further one. A state that was seen is not gone on from again.

#include <cstdint>
#include <string>
#include <vector>

#include "tests/model/program.h"
#include "tests/unit/engine/model/failure.h"

namespace offload::model {

using Choices = std::vector<uint32_t>;

struct Found {
  uint64_t states = 0;  // at which there was a choice
  uint64_t seen_again = 0;
  uint64_t ends = 0;
  uint64_t deepest = 0;  // choices one after another
  bool cut_short = false;
  bool failed = false;
  Failure failure = {};
  Choices choices;  // that lead to the failure
};

// One program at a time, on the calling thread.
Found explore(const Program& program);
// The same choices again, then always the first. What happens is said if World::tracing.
Found replay(const Program& program, const Choices& choices);
// By chance: `runs` ways through, without bounds on what a thread may be stopped for.
Found wander(const Program& program, uint64_t runs, uint64_t seed);

std::string text_of(const Choices& choices);
Choices choices_of(const std::string& text);

}  // namespace offload::model
