// SPDX-License-Identifier: Apache-2.0
#pragma once
// All that the process's addresses mean to the devices: mappings, and the window's free addresses.
// Driver's lock.

#include <map>
#include <vector>

#include "tests/simgpu/memory/mapping.h"
#include "tests/simgpu/memory/range_allocator.h"

namespace simgpu {

// A stretch of one mapping.
struct Segment {
  Mapping* mapping;
  uintptr_t address;
  size_t bytes;
  std::byte* data() const { return mapping->data(address); }
};

class AddressSpace {
 public:
  AddressSpace();

  // Addresses of the window. kNone if there are none.
  uint64_t take_addresses(size_t bytes, size_t alignment) {
    return addresses_.allocate(bytes, alignment);
  }
  bool take_addresses_at(uintptr_t begin, size_t bytes) {
    return addresses_.allocate_at(begin, bytes);
  }
  void give_addresses(uintptr_t begin, size_t bytes) { addresses_.release(begin, bytes); }

  Mapping* insert(Mapping mapping);
  void erase(Mapping* mapping);
  // The mapping that holds the address, or null.
  Mapping* find(uintptr_t address);
  // The first mapping that begins at or after the address, or null.
  Mapping* next(uintptr_t address);
  bool overlaps(uintptr_t begin, size_t bytes);

  // What a context owns, other than pieces of pools.
  std::vector<Mapping*> owned_by(const Context* context);

  // The stretches of [address, address + bytes) as `device` sees them. False: not mapped, or no
  // such access; *fault is the first such byte.
  bool translate(int device, uintptr_t address, size_t bytes, bool write,
                 std::vector<Segment>* segments, uintptr_t* fault);
  // What a copy may name: inside one allocation, or in VMM mappings without a gap.
  bool is_one_range(uintptr_t address, size_t bytes);

 private:
  std::map<uintptr_t, Mapping> mappings_;
  RangeAllocator addresses_;
};

AddressSpace& address_space();

}  // namespace simgpu
