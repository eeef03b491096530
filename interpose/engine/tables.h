// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tables of pointers in device memory that came by a copy from the host: an op that names the table
// names what the table names, and what tables that it points to name. Entries are hints: a stale
// one names a buffer too many, which costs a little and harms nothing.
//
// Threads: a mutex of its own, below the engine's (taken by name() without the engine's).

#include <cstdint>
#include <mutex>

#include "interpose/engine/pins.h"
#include "interpose/engine/port.h"
#include "interpose/life/heap.h"
#include "interpose/memory/window.h"

namespace offload {

class Tables {
 public:
  // Larger copies are not looked through, so no table reaches further than this behind an address.
  static constexpr uint64_t kLargest = 1 << 20;

  explicit Tables(const Window& window) : window_(window) {}
  // [begin, end) now holds these addresses of the window. Tables that lie in it whole are gone.
  void set(Address begin, Address end, OwnVector<Address> words);
  // Adds the words of the tables that reach into [begin, end).
  void read(Address begin, Address end, OwnVector<Address>* words) const;
  // Memory went back to the allocator, or was overwritten: tables that lie in it whole are gone.
  void forget(Address begin, Address end);
  // Adds what the tables at and shortly behind `address` name.
  void name(ThreadPins& pins, Address address) const;
  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

 private:
  struct Table {
    Address end;
    OwnVector<Address> words;
  };
  void name_level(ThreadPins& pins, Address address, int level, uint32_t* looked) const;
  void erase_covered(Address begin, Address end);

  const Window& window_;
  mutable std::mutex mutex_;
  OwnMap<Address, Table> by_begin_;
  uint64_t longest_ = 0;  // bytes of the longest table there was
  std::atomic<size_t> count_{0};
};

}  // namespace offload
