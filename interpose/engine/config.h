// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the engine is told at its birth. Plain values; the hooks fill them from the options and the
// device.

#include <cstdint>

namespace offload {

class HostShare;

enum class EvictedShows : uint8_t {
  kHostCopy,  // an evicted buffer's addresses show its host copy: a stray access is slow, not wrong
  kNothing,   // they show nothing: a stray access is error 700
};

struct EngineConfig {
  uint64_t granularity = 2ull << 20;  // bytes of the smallest extent
  uint64_t limit_bytes = 0;           // M_total: what may be mapped on the device
  uint64_t device_bytes = 0;      // what the card has; 0: limit_bytes. The limit once nothing moves
  uint64_t window_bytes = 0;      // address space reserved; 0: from the three others
  uint64_t host_limit_bytes = 0;  // what slots may take
  HostShare* host_share = nullptr;          // other processes, which pin host memory, too
  uint64_t min_size_bytes = 4ull << 20;     // smaller requests come from slabs and never move
  uint64_t slot_chunk_bytes = 64ull << 20;  // pinned at once
  uint32_t grace_ops = 16;
  uint32_t largest_extent_granules = 16;
  // A driver's queue takes about a thousand operations; a call that takes long while so many are
  // pending stood before a full one.
  uint32_t queue_depth = 512;
  uint32_t patience_ms = 5000;  // before out-of-memory, for work that may wait for the host
  uint64_t copy_piece_bytes = 16ull << 20;
  EvictedShows evicted = EvictedShows::kHostCopy;
  bool move = true;  // false: intercept and count, evict nothing
  // With `move` false: what would be moved if there were so much on the device and in host memory
  // is decided, and counted; 0: it is not.
  uint64_t rehearsed_limit_bytes = 0;
  uint64_t rehearsed_host_limit_bytes = 0;
  bool finished_victims_only = false;  // OFFLOAD_VICTIMS=finished
  bool verify = false;
  bool free_is_fenced =
      false;  // cuMemFree does not block, but fences every stream (PyTorch without its cache)
};

}  // namespace offload
