// SPDX-License-Identifier: Apache-2.0
#pragma once
// Host memory for evicted extents. A slot is as large as the extent that it holds. With `mappable`
// each slot is a physical allocation of its own, so that it can be shown at the program's address,
// and at the limit free slots of other sizes give way to the size that is needed; else it is a part
// of a pinned block, and is cut from larger free ones or joined with free neighbours.
//
// The reserve: evictions that a restore does not need leave so much pinned memory free that two
// extents of the largest size fit, less a granule. What host and device have free is then enough to
// swap any piece in: the device lacks less than a piece of room, and a victim's piece fits. Without
// it a full host and a full device would lock each other out. Under the engine's mutex.

#include <cstdint>

#include "interpose/engine/buffer.h"
#include "interpose/engine/streams.h"
#include "interpose/memory/address_space.h"
#include "interpose/memory/host_share.h"
#include "profiler/statistics.h"

namespace offload {

// Why take() had no slot: host memory that is not pinned yet.
struct Lacking {
  uint32_t granules = 0;  // of each slot to be pinned; 0: it is not for lack of that
  bool make_way = false;  // free slots of other sizes go back to the system first
};

class Slots {
 public:
  Slots(Port& port, Streams& streams, Statistics& statistics);
  Status initialise(uint64_t granularity, uint64_t limit_bytes, uint32_t largest_granules,
                    uint64_t chunk_bytes, bool mappable);

  // Other processes pin host memory, too. Before the first take(); null: they are not asked about.
  void share_with(HostShare* share) { share_ = share; }

  // A free slot of this size, whose fence is for the caller to wait for. Null: see `lacking`; or
  // the limit is reached, or the reserve is, and this is not `for_restore`.
  Slot* take(uint32_t granules, bool for_restore, Lacking* lacking);
  void put(Slot* slot, const Fence& fence);

  // Pins what was lacking. That is slow, so it is done without the mutex; begin and end are under
  // it, and there is one Growth at a time. begin: false if there is nothing to be had after all.
  struct Growth {
    uint32_t granules = 0;
    uint64_t count = 0;
    bool refused_before = false;
    uint64_t generation = 0;
    OwnVector<Slot*> back;     // to the system, first
    OwnVector<Address> homes;  // of those to be made
    OwnVector<Slot> made;
  };
  bool begin(const Lacking& lacking, Growth* growth);
  void pin(Growth* growth) const;
  void end(Growth* growth);

  // Whether take() would have had a slot, had the work on free slots of other sizes passed; waiting
  // for `fence` helps.
  bool blocked(Fence* fence);
  // Pinned blocks died with their context. No slot is in use. What is to be given back to the
  // system is left to pin() and end().
  void context_gone(Growth* growth);

  uint64_t pinned_bytes() const { return pinned_; }
  uint64_t free_bytes() const { return free_granules_ * granularity_; }  // the reserve included
  uint64_t limit_bytes() const { return limit_; }
  // What is left would not hold another of this size beside the reserve.
  bool at_limit(uint32_t granules) const {
    return available_bytes() < granules * granularity_ + reserve_bytes();
  }
  uint64_t used_bytes() const { return pinned_ - free_bytes(); }
  // What could hold something, pinned or not yet.
  uint64_t available_bytes() const { return host_full_ ? free_bytes() : limit_ - used_bytes(); }
  // Others had all that was left to pin, and now it can be had (a process ended, say).
  bool others_gave_back();
  uint64_t reserve_bytes() const { return (2 * largest_ - 1) * granularity_; }

 private:
  friend class EngineTest;
  static constexpr int kSizes = 5;
  static constexpr uint32_t kAskAgain = 64;  // refused growths until the system is asked again
  OwnDeque<Slot*>& list(uint32_t granules);
  bool lacks_reserve(uint32_t granules, Lacking* lacking);
  bool may_pin(uint32_t granules, bool insist);
  bool enough_given(uint64_t given, uint64_t bytes) const;
  bool can_make_way(uint64_t bytes);
  void make_way(uint64_t bytes, OwnVector<Slot*>* back);
  bool make_one(Growth* growth, Address home) const;
  void gave_back(Slot* slot);
  bool cut(uint32_t granules);
  bool join(uint32_t granules);
  bool room_for(uint64_t bytes) const { return pinned_ + bytes <= limit_; }

  uint64_t allowed(uint64_t count, uint64_t bytes);

  Port& port_;
  Streams& streams_;
  Statistics& statistics_;
  HostShare* share_ = nullptr;
  AddressSpace homes_;
  uint64_t granularity_ = 1;
  uint64_t limit_ = 0;
  uint32_t largest_ = 16;
  uint64_t chunk_ = 0;
  bool mappable_ = true;
  bool host_full_ = false;  // the system would not pin more, or others have it
  bool others_have_it_ = false;
  bool in_vain_ = false;  // nor would it for who insisted, and nothing has come back since
  uint64_t generation_ = 0;
  uint32_t refused_growths_ = 0;
  uint64_t pinned_ = 0;
  uint64_t free_granules_ = 0;
  OwnDeque<Slot*> free_[kSizes];
};

}  // namespace offload
