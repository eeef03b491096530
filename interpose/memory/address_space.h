// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hands out ranges of one reservation of address space, best fit, and joins what comes back. Ranges
// come back only once nothing is mapped there. Counts in granules. Not thread-safe: under the
// engine's mutex.

#include <cstdint>

#include "interpose/engine/port.h"
#include "interpose/life/heap.h"

namespace offload {

class AddressSpace {
 public:
  // `low_half_floor`: no range starts at an address whose low 32 bits are below it (an index beside
  // half a stale pointer would otherwise look like an address of ours). 0: anywhere.
  Status reserve(Port& port, uint64_t bytes, uint64_t granularity, uint64_t low_half_floor);

  Address base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  // 0: exhausted.
  Address take(uint64_t granules);
  void give_back(Address address, uint64_t granules);

 private:
  Address fit(Address begin, uint64_t range_granules, uint64_t granules) const;

  Address base_ = 0;
  uint64_t bytes_ = 0;
  uint64_t granularity_ = 1;
  uint64_t low_half_floor_ = 0;
  OwnMap<Address, uint64_t> free_;  // begin -> granules
};

}  // namespace offload
