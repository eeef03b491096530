// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which of the program's allocations the launches named, in the order of submission: a running hash
// and counts for the report, and the list itself (SIMGPU_NAMES). Allocations are told apart by
// birth and offset, never by address, so two runs of one program agree whoever allocates. Driver's
// lock.

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/simgpu/memory/allotments.h"

namespace simgpu {

// A word of a launch's arguments that points into an allocation of the program's.
struct Name {
  uintptr_t address;
  AllotmentRef allotment;
  uint64_t offset() const { return address - allotment->begin; }
  size_t bytes() const { return allotment->bytes - offset(); }
};

class NameLog {
 public:
  NameLog();
  // `dead`: words of the arguments that point into a freed allocation. A launch that names nothing
  // is none of the program's business (something below it may launch, too).
  void launch(const std::string& kernel, const std::vector<Name>& names, size_t dead);

 private:
  std::FILE* file_ = nullptr;
};

NameLog& name_log();

}  // namespace simgpu
