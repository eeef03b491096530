// SPDX-License-Identifier: Apache-2.0
#pragma once
// One live allocation of the program that is large enough to move, and the pieces it is made of.
// Buffer objects are never given back to a heap: a launch on another thread may hold a stale
// pointer to one (a phantom in its arguments), so the memory stays a Buffer for ever and is
// recycled as one.

#include <atomic>
#include <cstdint>

#include "interpose/engine/clauses.h"
#include "interpose/engine/fence.h"
#include "interpose/engine/port.h"

namespace offload {

struct Buffer;

// A physical allocation on the device, 1 to 16 granules, with a permanent home address where copies
// read and write it.
struct Extent {
  Handle handle = 0;
  Address home = 0;
  uint32_t granules = 0;
  uint32_t shown_elsewhere = 0;  // addresses of former owners that still show it
  Buffer* owner = nullptr;       // null: in the pool
  uint32_t piece = 0;            // index in the owner
  Fence fence;                   // in the pool: what must pass before a new owner writes it
  Fence read_by;  // copies of evictions that were called off: they harm nobody, but must not fault
};

// Host memory that holds one evicted extent.
struct Slot {
  Address home = 0;
  Handle handle = 0;  // 0: plain pinned memory, never mapped at a program's address
  Address block = 0;  // of pinned memory that it is a part of
  uint32_t granules = 0;
  bool mapped = false;  // shown at the owner's address
  Fence fence;          // free: what must pass before it is written again
};

enum class PieceState : uint8_t { kResident, kLeaving, kHost };  // RES, EVG, HOST of the protocol

// One extent's worth of a buffer's address range.
struct Piece {
  PieceState state = PieceState::kResident;
  bool busy = false;  // somebody maps, unmaps or waits here without the mutex: everybody else waits
  bool used_in_place = false;  // ops have written the slot since the copy
  uint32_t granules = 0;
  uint64_t offset = 0;       // bytes from the buffer's address
  Extent* extent = nullptr;  // kResident, kLeaving
  Extent* shown = nullptr;   // the extent that the address shows, current or former
  Slot* slot = nullptr;      // kLeaving, kHost
  Fence leave;               // e1: use and fill at the time of the claim
  Fence copied;              // e2
  uint64_t checksum = 0;     // OFFLOAD_VERIFY
  uint64_t serial = 0;       // which eviction; a job of the worker for an older one is stale
};

enum class BufferState : uint32_t {
  kGone,      // not an allocation now
  kParked,    // freed, kept mapped for the next request of its size
  kResident,  // every piece RES: the only state in which an op may go on without the mutex
  kMoving,    // some piece EVG or HOST, or claimed
  kHeld,      // freed, but a graph that is alive names it: nobody else gets it
};

inline constexpr int kUseSlots = 4;

struct Buffer {
  // Read and written by launching threads without the mutex, while they pin the buffer.
  std::atomic<BufferState> state{BufferState::kGone};
  std::atomic<uint64_t> waited{0};         // streams (index < 64) that are ordered behind `fill`
  std::atomic<uint64_t> use[kUseSlots]{};  // last op on each stream: (index + 1) << 48 | position
  std::atomic<bool> use_overflow{false};   // more streams than that: every stream counts
  std::atomic<uint64_t> last_op{0};        // number of the device's op that named it last
  std::atomic<bool> names_others{false};   // holds a table of pointers

  // Under the engine's mutex.
  Address address = 0;
  uint64_t bytes = 0;     // asked for
  uint32_t granules = 0;  // mapped
  uint32_t kept = 0;      // reasons why it may not move (exported, encoded in a descriptor)
  uint32_t held = 0;      // graphs and instances of graphs that name it: it stays where it is
  uint64_t id = 0;        // by birth
  uint64_t birth_op = 0;
  bool stream_ordered = false;  // born in the order of a stream
  uint64_t moved_bytes = 0;
  uint32_t live_index = 0;      // in Engine::live_
  uint32_t in_place = 0;        // ops being submitted that may use it where it is: nobody moves it
  bool rehearsed_away = false;  // would be in host memory, if anything were moved
  OwnVector<Piece> pieces;
  Fence fill;              // what gave it its extents
  Fence parked;            // kParked, kHeld
  Buffer* next = nullptr;  // in the list of parked or recycled buffers
  Buffer* previous = nullptr;

  void note_use(StreamIndex stream, uint64_t position, uint64_t op) {
    const uint64_t tag = static_cast<uint64_t>(stream + 1) << 48;
    if (holds(Clause::kUseRestartsGrace) || last_op.load(std::memory_order_relaxed) == 0)
      last_op.store(op, std::memory_order_relaxed);
    for (std::atomic<uint64_t>& slot : use) {
      uint64_t seen = slot.load(std::memory_order_relaxed);
      if (seen == 0 &&
          slot.compare_exchange_strong(seen, tag | position, std::memory_order_relaxed))
        return;
      if ((seen & ~kPositionMask) != tag) continue;
      while ((seen & kPositionMask) < position &&
             !slot.compare_exchange_weak(seen, tag | position, std::memory_order_relaxed)) {
      }
      return;
    }
    use_overflow.store(true, std::memory_order_relaxed);
  }
  static constexpr uint64_t kPositionMask = (uint64_t{1} << 48) - 1;
};

}  // namespace offload
