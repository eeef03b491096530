// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small allocations: blocks of size classes, eight to a doubling, cut from slabs that never move.
// Each freed block keeps its own fence. As fast as a caching allocator: a list pop and a list push.
// Under the engine's mutex.

#include <cstdint>

#include "interpose/engine/buffer.h"

namespace offload {

struct Block {
  bool live = false;
  bool stream_ordered = false;  // born in the order of a stream
  uint64_t bytes = 0;           // asked for
  uint64_t id = 0;
  uint64_t birth_op = 0;
  uint32_t next_free = 0;
  uint32_t held = 0;  // graphs and instances of graphs that name it: freed, it is nobody else's
  Fence fence;  // what must pass before it is used again; live: what had to before it was used
};

// A range of the window cut into blocks of one class.
struct Slab {
  Address address = 0;
  uint32_t granules = 0;
  uint32_t size_class = 0;
  uint64_t block_bytes = 0;
  uint32_t live = 0;
  OwnVector<Extent*> extents;
  OwnVector<Block> blocks;
  uint32_t first_free = 0;  // index + 1 into blocks; 0: none
  bool listed = false;      // among the slabs of its class with free blocks
};

struct BlockAt {
  Slab* slab = nullptr;
  uint32_t index = 0;
  Block& block() const { return slab->blocks[index]; }
  Address address() const { return slab->address + index * slab->block_bytes; }
};

class Slabs {
 public:
  static constexpr uint64_t kSmallest = 512;

  static uint32_t class_of(uint64_t bytes);
  static uint64_t class_bytes(uint32_t size_class);
  // How large a slab of this class should be, in granules.
  static uint32_t slab_granules(uint64_t block_bytes, uint64_t granularity, uint32_t largest);

  // A free block of this class; the latest freed for which `suits` holds, else the latest. False: a
  // slab is needed.
  template <typename Predicate>
  bool take(uint32_t size_class, Predicate&& suits, BlockAt* out) {
    OwnVector<Slab*>& slabs = with_room(size_class);
    if (slabs.empty()) return false;
    Slab& slab = *slabs.back();
    uint32_t* link = &slab.first_free;
    uint32_t* chosen = link;
    for (int looked = 0; looked < kLookedAt && *link != 0; ++looked) {
      Block& block = slab.blocks[*link - 1];
      if (suits(block)) {
        chosen = link;
        break;
      }
      link = &block.next_free;
    }
    out->slab = &slab;
    out->index = *chosen - 1;
    unlink(slab, chosen);
    return true;
  }
  // Adds a slab of `bytes` over these extents, all blocks free behind `fence`.
  Slab* add(uint32_t size_class, Address address, uint32_t granules, OwnVector<Extent*> extents,
            uint64_t bytes, const Fence& fence);
  void put(BlockAt at);
  // The block whose range holds `address`.
  static BlockAt find(Slab& slab, Address address);
  // The same, if it is one, in use or held.
  static bool find_taken(Slab& slab, Address address, BlockAt* out) {
    const BlockAt at = find(slab, address);
    if (at.index >= slab.blocks.size() || (!at.block().live && at.block().held == 0)) return false;
    *out = at;
    return true;
  }
  // A slab without live blocks, taken off the lists; null: none. Its extents and address are the
  // caller's; then forget().
  Slab* take_empty();
  void forget(Slab* slab);
  uint64_t granules() const {
    uint64_t sum = 0;
    for (const Slab* slab : all_) sum += slab->granules;
    return sum;
  }
  uint64_t empty_granules() const {
    uint64_t sum = 0;
    for (const Slab* slab : all_) sum += slab->live == 0 ? slab->granules : 0;
    return sum;
  }
  template <typename Visitor>
  void for_each(Visitor&& visit) {
    for (Slab* slab : all_) visit(*slab);
  }

 private:
  static constexpr int kLookedAt = 4;
  OwnVector<Slab*>& with_room(uint32_t size_class);
  void unlink(Slab& slab, uint32_t* link);
  void list(Slab& slab);
  void unlist(Slab& slab);

  OwnVector<OwnVector<Slab*>> with_room_;  // by class
  OwnVector<Slab*> all_;
};

}  // namespace offload
