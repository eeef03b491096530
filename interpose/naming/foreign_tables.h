// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tables of pointers to our memory that were copied to memory of the driver's: a pool of the
// program's own, what a communication library has allocated. An op that names an address shortly
// before one, or in it, names what the table names. Entries are hints, as those of engine/tables.h.
// Of the process: such a table may name memory of several devices.
//
// Threads: any; a mutex of its own, the last of all.

#include <atomic>
#include <mutex>

#include "interpose/engine/port.h"
#include "interpose/life/heap.h"

namespace offload {

class ForeignTables {
 public:
  static constexpr uint64_t kReach = 64 << 10;  // from an address that an op names
  static constexpr size_t kMostTables = 4096;
  static constexpr size_t kMostWords = 1 << 18;

  // [begin, end) now holds these words, not none. What it held before is forgotten, where it is
  // covered whole. False: there are too many; nothing has changed.
  bool set(Address begin, Address end, OwnVector<Address> words);
  void forget(Address begin, Address end);
  // Adds the words of the tables that reach into [begin, end).
  void read(Address begin, Address end, OwnVector<Address>* words) const;
  // Whether read(address, address + kReach) may find any. Takes no lock.
  bool may_name(Address address) const {
    const Address lowest = lowest_.load(std::memory_order_acquire);
    return address + kReach > lowest && address < highest_.load(std::memory_order_acquire);
  }
  bool empty() const { return lowest_.load(std::memory_order_acquire) == kNone; }

 private:
  static constexpr Address kNone = ~Address{0};
  struct Table {
    Address end;
    OwnVector<Address> words;
  };
  void erase_covered(Address begin, Address end);

  mutable std::mutex mutex_;
  OwnMap<Address, Table> by_begin_;
  size_t words_ = 0;
  uint64_t longest_ = 0;  // bytes of the longest table there was
  // Of all tables that there have been.
  std::atomic<Address> lowest_{kNone};
  std::atomic<Address> highest_{0};
};

// Never destroyed.
ForeignTables& foreign_tables();

}  // namespace offload
