// SPDX-License-Identifier: Apache-2.0
#pragma once
// Physical memory: one sparse memory file per device and one for host memory that the driver owns.
// Pieces are contiguous in the file, so neighbours mapped side by side are one mapping for the
// kernel. Offsets are more plentiful than bytes (a file four times the capacity), so capacity never
// fails for fragmentation. Freed memory keeps its old content until much of it has gathered. Not
// thread-safe: the driver's lock.

#include <cstddef>
#include <cstdint>

#include "tests/simgpu/memory/range_allocator.h"

namespace simgpu {

class PhysicalMemory {
 public:
  static constexpr uint64_t kNone = RangeAllocator::kNone;

  PhysicalMemory(int id, const char* name, size_t capacity, size_t granularity);
  // A memory of another process, whose file this is: nothing can be allocated in it, and what is
  // freed stays. Takes the descriptor.
  PhysicalMemory(int id, int fd, size_t file_bytes);

  // kNone: out of memory. `bytes` is a multiple of the granularity.
  uint64_t allocate(size_t bytes);
  void free(uint64_t offset, size_t bytes);
  // For who keeps a piece for reuse: it counts as free meanwhile. take_back is false if memory has
  // run out.
  void set_aside(size_t bytes) { used_ -= bytes; }
  bool take_back(size_t bytes);
  void free_aside(uint64_t offset, size_t bytes);

  int id() const { return id_; }
  bool foreign() const { return capacity_ == 0; }
  int fd() const { return fd_; }
  size_t capacity() const { return capacity_; }
  size_t used() const { return used_; }
  size_t peak() const { return peak_; }
  // Where the driver itself sees it, always.
  std::byte* at(uint64_t offset) const { return base_ + offset; }

 private:
  void map_all(const char* name);
  void give_back_pages();

  int id_;
  int fd_;
  size_t capacity_;
  size_t granularity_;
  size_t file_bytes_;
  std::byte* base_;
  size_t used_ = 0;
  size_t peak_ = 0;
  size_t dirty_ = 0;         // free bytes that may still have pages
  uint64_t high_water_ = 0;  // end of what was ever allocated
  RangeAllocator offsets_;
};

}  // namespace simgpu
