// SPDX-License-Identifier: Apache-2.0
#pragma once
// The window: the one range of addresses that the program's allocations of a device come from, and
// the tables that say what stands where. A launch asks "does this word name a buffer" for every
// word of its arguments: a subtraction, a compare and a load.
//
// Threads: lookup() and contains() from any thread, no lock; the rest under the engine's mutex.

#include <atomic>
#include <cstdint>

#include "interpose/memory/address_space.h"

namespace offload {

struct Buffer;
struct Slab;

// What a page of the window names: nothing (null), a buffer, or "look into the tables of pointers"
// (kTables).
using PageEntry = Buffer*;

class Window {
 public:
  static constexpr uint64_t kLowHalfFloor = 256ull << 20;

  Window() = default;
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window();  // the tables; the address space is the port's

  // `bytes` of address space, in pages of `granularity` bytes (a power of two).
  Status reserve(Port& port, uint64_t bytes, uint64_t granularity);

  Address base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  bool contains(Address address) const { return address - base_ < bytes_; }
  PageEntry lookup(Address address) const {
    const uint64_t offset = address - base_;
    if (offset >= bytes_) return nullptr;
    return names_[offset >> shift_].load(std::memory_order_acquire);
  }

  // The end of `address`'s page, or `bytes` behind it if that comes first.
  Address reach(Address address, uint64_t bytes) const {
    const Address page_end = (address | ((uint64_t{1} << shift_) - 1)) + 1;
    return page_end - address < bytes ? page_end : address + bytes;
  }

  // Address ranges. Each gets a page before and one after it that name it too: kernels offset their
  // base pointers.
  Address take(uint64_t granules);
  void give_back(Address address, uint64_t granules);

  void show_buffer(Address address, uint64_t granules, Buffer* buffer);
  void show_slab(Address address, uint64_t granules, Slab* slab);
  void hide(Address address, uint64_t granules);
  // Pages of a slab that hold tables of pointers.
  void mark_tables(Address address, uint64_t bytes);

  // What owns this page, or null. Pages beside a buffer are owned by nobody.
  Buffer* buffer_at(Address address) const;
  Slab* slab_at(Address address) const;

  // Not a buffer: a mark in lookup()'s answer.
  static PageEntry tables() { return reinterpret_cast<PageEntry>(uintptr_t{1}); }

 private:
  uint64_t page(Address address) const { return (address - base_) >> shift_; }
  void name(uint64_t first_page, uint64_t pages, PageEntry entry);

  AddressSpace space_;
  Address base_ = 0;
  uint64_t bytes_ = 0;
  uint32_t shift_ = 0;
  uint64_t pages_ = 0;
  std::atomic<PageEntry>* names_ = nullptr;  // gaps included
  uintptr_t* owners_ = nullptr;              // Buffer*, or Slab* | 1
};

}  // namespace offload
