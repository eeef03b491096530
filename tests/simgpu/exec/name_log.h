// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which of the program's allocations the launches named, in the order of submission: a running hash
// and counts for the report, and the list itself (SIMGPU_NAMES), with all that happens to those
// allocations (README, "The list of names"). Allocations are told apart by
// birth and offset, never by address, so two runs of one program agree whoever allocates. Driver's
// lock.

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "tests/simgpu/memory/allotments.h"
#include "tests/simgpu/module/module.h"

namespace simgpu {

// A word of a launch's arguments that points into an allocation of the program's.
struct Name {
  uintptr_t address;
  AllotmentRef allotment;
  uint64_t offset() const { return address - allotment->begin; }
  size_t bytes() const { return allotment->bytes - offset(); }
};

// What a launch's arguments name, as it is now.
struct Names {
  bool told = false;  // `list` is all; else nobody tells what the program allocates
  std::vector<Name> list;
  size_t dead = 0;  // words that point into a freed allocation
};

// Calls `visit(address)` for each word of the parameters that points into the window.
void each_address(const Kernel& kernel, const std::vector<std::byte>& buffer,
                  const std::function<void(uintptr_t)>& visit);
Names names_in(const Kernel& kernel, const std::vector<std::byte>& buffer);

class NameLog {
 public:
  NameLog();
  // A launch that names nothing is none of the program's business (something below it may launch,
  // too).
  void launch(uint64_t stream, const std::string& kernel, const SimgpuLaunch& shape,
              const Names& names);
  // Null: not of the program's device memory.
  void copy(uint64_t stream, size_t bytes, const Allotment* to, const Allotment* from);
  void fill(uint64_t stream, size_t bytes, const Allotment* what);
  void born(const Allotment& allotment);
  void freed(const Allotment& allotment);

 private:
  std::FILE* file_ = nullptr;
};

NameLog& name_log();

}  // namespace simgpu
