// SPDX-License-Identifier: Apache-2.0
#pragma once
// Host memory for evicted extents. A slot is as large as the extent that it holds. With `mappable`
// each slot is a physical allocation of its own, so that it can be shown at the program's address;
// else it is a part of a pinned block. One slot of the largest size is kept for evictions that a
// restore needs: without it a full host and a full device would lock each other out. Under the
// engine's mutex.

#include <cstdint>

#include "interpose/engine/buffer.h"
#include "interpose/engine/streams.h"
#include "interpose/memory/address_space.h"
#include "profiler/statistics.h"

namespace offload {

class Slots {
 public:
  Slots(Port& port, Streams& streams, Statistics& statistics);
  Status initialise(uint64_t granularity, uint64_t limit_bytes, uint32_t largest_granules,
                    uint64_t chunk_bytes, bool mappable);

  // A free slot of this size, whose fence is for the caller to wait for; larger where the limit
  // leaves no other. Null: the limit is reached. `for_restore` may use the reserve. Pins memory if
  // none is free: slow.
  Slot* take(uint32_t granules, bool for_restore);
  void put(Slot* slot, const Fence& fence);
  // Whether take() would pin memory first, or fail.
  bool ready(uint32_t granules) const;

  uint64_t pinned_bytes() const { return pinned_; }
  uint64_t free_bytes() const;  // pinned and in no use, the reserve included
  uint64_t limit_bytes() const { return limit_; }

 private:
  static constexpr int kSizes = 5;
  bool grow(uint32_t granules);
  Slot* make(uint32_t granules, Address pinned);
  bool room_for(uint64_t bytes) const { return pinned_ + bytes <= limit_; }

  bool shrink(uint64_t bytes);
  Slot* take_larger(uint32_t granules);

  Port& port_;
  Streams& streams_;
  Statistics& statistics_;
  AddressSpace homes_;
  uint64_t granularity_ = 1;
  uint64_t limit_ = 0;
  uint32_t largest_ = 16;
  uint64_t chunk_ = 0;
  bool mappable_ = true;
  bool host_full_ = false;  // the system would not pin more
  uint64_t pinned_ = 0;
  Slot* reserve_ = nullptr;
  bool reserve_taken_ = false;
  OwnDeque<Slot*> free_[kSizes];
};

}  // namespace offload
