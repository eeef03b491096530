// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the program asked its runtime for: address and exact size of each live allocation. The
// runtime library tells, from above everything that may stand between it and the driver, so a
// kernel of unknown effect touches the same bytes whoever allocates below. Content of a new
// allocation is zero at its first use, for the same reason. Driver's lock.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "tests/simgpu/driver/lock.h"

namespace simgpu {

struct Allotment {
  uintptr_t begin = 0;
  size_t bytes = 0;
  uint64_t number = 0;  // by birth, from 1
  bool fresh = true;    // no operation has used it
};
using AllotmentRef = std::shared_ptr<Allotment>;

class Allotments {
 public:
  void add(uintptr_t begin, size_t bytes);
  void remove(uintptr_t begin);
  // The live one that holds the address, or null.
  AllotmentRef find(uintptr_t address) const;
  // In one that was freed, with nothing new there yet.
  bool is_dead(uintptr_t address) const;
  // False: nobody tells here what the program asks for.
  bool told() const { return births_ > 0; }

 private:
  std::map<uintptr_t, AllotmentRef> live_;
  std::map<uintptr_t, size_t> dead_;  // bytes by beginning; disjoint
  uint64_t births_ = 0;
};

Allotments& allotments();

// An operation of `device` uses it now: zeroes it if it is the first one. Whatever of it is not
// there for the device is left to the operation's own fault.
void first_use(Allotment& allotment, int device);

}  // namespace simgpu

// What the runtime library calls; not of NVIDIA's interface.
extern "C" void simgpu_program_allocated(uintptr_t begin, size_t bytes);
extern "C" void simgpu_program_frees(uintptr_t begin);
