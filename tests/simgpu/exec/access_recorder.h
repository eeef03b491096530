// SPDX-License-Identifier: Apache-2.0
#pragma once
// Listens to one running kernel: refuses what is not mapped for its device, and gathers what it
// read and wrote into few ranges for the checker. Called by the executor without the lock; takes it
// for what it has not seen yet.

#include <array>

#include "tests/simgpu/driver/lock.h"
#include "tests/simgpu/exec/range_set.h"
#include "tests/simgpu/memory/address_space.h"
#include "tests/simgpu/module/module.h"

namespace simgpu {

class AccessRecorder : public AccessSink {
 public:
  AccessRecorder(int device, bool record) : device_(device), record_(record) {}

  bool access(uintptr_t address, size_t bytes, bool write) override;
  size_t extent(uintptr_t address) override;

  bool refused() const { return refused_; }
  uintptr_t refused_address() const { return refused_address_; }
  double bytes() const { return bytes_; }
  // Tells the checker; with the lock held.
  void tell(Lock&);

 private:
  bool wants_pages(const Segment& segment, bool write) const;
  bool look_up(uintptr_t address, size_t bytes, bool write);

  struct Known {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    bool writable = false;
  };
  int device_;
  bool record_;
  bool refused_ = false;
  uintptr_t refused_address_ = 0;
  double bytes_ = 0;
  std::array<Known, 4> known_{};
  size_t next_known_ = 0;
  RangeSet reads_;
  RangeSet writes_;
};

}  // namespace simgpu
