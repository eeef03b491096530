// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stream-ordered allocation (cuMemAllocAsync and its pools). An address is chosen when the call is
// made; the memory becomes usable and unusable when the stream gets there. A freed piece is given
// out again to its own stream at once, to others when its free has been executed, and, before
// memory runs out, behind a wait. Driver's lock.

#include <cuda.h>

#include <map>
#include <memory>

#include "tests/simgpu/driver/lock.h"
#include "tests/simgpu/exec/record.h"
#include "tests/simgpu/memory/heap.h"
#include "tests/simgpu/memory/mapping.h"

namespace simgpu {

struct Stream;

struct Pool {
  int device = 0;
  bool is_default = false;
  bool destroyed = false;  // lives until its last piece is freed
  CUmemPoolProps properties = {};
  int reuse_follow_events = 1;
  int reuse_opportunistic = 1;
  int reuse_internal_dependencies = 1;
  uint64_t release_threshold = 0;
  uint64_t reserved = 0;
  uint64_t reserved_high = 0;
  uint64_t used = 0;
  uint64_t used_high = 0;
  CUmemAccess_flags access[kMaxDevices] = {};

  struct Piece {
    size_t bytes = 0;
    bool is_free = true;
    Mapping* mapping = nullptr;  // kept after a free, until the piece changes its shape
    RecordRef freed;             // the end of its last use; null: nothing to wait for
  };
  struct Chunk {
    heap::Block block;
    std::map<uintptr_t, Piece> pieces;  // without gaps
  };
  std::map<uintptr_t, Chunk> chunks;
};

namespace pools {

Pool* default_pool(int device);
Pool* create(const CUmemPoolProps& properties);
void destroy(Lock&, Pool* pool);
// Null if it is not a live pool.
Pool* find(CUmemoryPool handle);
// The pool that cuMemAllocAsync uses.
Pool*& current(int device);

CUresult allocate(Lock& lock, Pool* pool, size_t bytes, Stream& stream, CUdeviceptr* address);
// INVALID_VALUE: it is free already.
CUresult free(Lock& lock, Mapping* mapping, Stream& stream);
// A cuMemAlloc allocation, given back when the stream gets there.
CUresult free_heap(Lock& lock, Mapping* mapping, Stream& stream);
// Nothing uses it any more: free now. INVALID_VALUE: it is free already, or will be.
CUresult free_now(Mapping* mapping);
// Gives unused chunks back until at most `keep` bytes are reserved.
void trim(Pool* pool, uint64_t keep);
void trim_all(int device);
bool have_unused(int device);
void set_access(Pool* pool, int device, CUmemAccess_flags flags);
// After a synchronisation: every pool goes back to its threshold.
void after_synchronisation();

}  // namespace pools
}  // namespace simgpu
