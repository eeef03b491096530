// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tables of pointers in device memory that came by a copy from the host: an op that names the table
// names what the table names. Entries are hints: a stale one names a buffer too many, which costs a
// little and harms nothing.
//
// Threads: a mutex of its own, below the engine's (taken by name() without the engine's).

#include <cstdint>
#include <mutex>

#include "interpose/engine/pins.h"
#include "interpose/engine/port.h"
#include "interpose/life/heap.h"

namespace offload {

class Tables {
 public:
  // [begin, end) now holds pointers into these buffers. Tables that lie in it whole are gone.
  void set(Address begin, Address end, OwnVector<Buffer*> named);
  // Memory went back to the allocator, or was overwritten: tables that lie in it whole are gone.
  void forget(Address begin, Address end);
  // Adds what the tables in [begin, end) name.
  void name(ThreadPins& pins, Address begin, Address end) const;
  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

 private:
  struct Table {
    Address end;
    OwnVector<Buffer*> named;
  };
  void erase_covered(Address begin, Address end);

  mutable std::mutex mutex_;
  OwnMap<Address, Table> by_begin_;
  uint64_t longest_ = 0;  // bytes of the longest table there was
  std::atomic<size_t> count_{0};
};

}  // namespace offload
