// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/access_recorder.h"

#include <algorithm>

#include "tests/simgpu/check/checker.h"
#include "tests/simgpu/memory/sparse_copy.h"
#include "tests/simgpu/memory/window.h"

namespace simgpu {

bool AccessRecorder::access(uintptr_t address, size_t bytes, bool write) {
  if (bytes == 0) return true;
  const uintptr_t end = address + bytes;
  const bool seen = std::any_of(known_.begin(), known_.end(), [&](const Known& known) {
    return address >= known.begin && end <= known.end && (known.writable || !write);
  });
  if (!seen && !look_up(address, bytes, write)) return false;
  bytes_ += static_cast<double>(bytes);
  if (!record_) return true;
  if (write) {
    writes_.add(address, end);
  } else if (!writes_.contains(address, end)) {  // what it wrote itself it may read
    reads_.add(address, end);
  }
  return true;
}

// Large ranges: the pages at once. What is only read stays untouched where it is.
bool AccessRecorder::wants_pages(const Segment& segment, bool write) const {
  constexpr size_t kWorthIt = 256 << 10;
  Mapping& mapping = *segment.mapping;
  if (mapping.populated || segment.bytes < kWorthIt || !window().contains(segment.address) ||
      mapping.access[device_] != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
    return false;
  }
  mapping.populated =
      write || is_touched(*mapping.physical, mapping.offset_of(segment.address), segment.bytes);
  return mapping.populated;
}

bool AccessRecorder::look_up(uintptr_t address, size_t bytes, bool write) {
  Lock lock(driver_mutex());
  std::vector<Segment> segments;
  std::vector<std::pair<uintptr_t, size_t>> populated;
  uintptr_t fault = 0;
  if (!address_space().translate(device_, address, bytes, write, &segments, &fault)) {
    refused_ = true;
    refused_address_ = fault;
    return false;
  }
  for (const Segment& segment : segments) {
    checker().use(*segment.mapping);
    if (wants_pages(segment, write)) populated.emplace_back(segment.address, segment.bytes);
  }
  if (segments.size() == 1) {
    const Mapping& mapping = *segments[0].mapping;
    known_[next_known_] = {mapping.begin, mapping.end(),
                           mapping.access[device_] == CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    next_known_ = (next_known_ + 1) % known_.size();
  }
  lock.unlock();
  for (const auto& [begin, size] : populated) {
    populate(begin + static_cast<uintptr_t>(window().delta), size);
  }
  return true;
}

size_t AccessRecorder::extent(uintptr_t address) {
  Lock lock(driver_mutex());
  const Mapping* mapping = address_space().find(address);
  size_t bytes = 0;
  // A buffer may be several mappings side by side.
  while (mapping != nullptr && mapping->live &&
         mapping->access[device_] == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
    const bool vmm = mapping->kind == MemoryKind::kVmm;
    const uintptr_t end = mapping->begin + (vmm ? mapping->span : mapping->bytes);
    if (end <= address + bytes) break;
    bytes = end - address;
    if (!vmm) break;
    mapping = address_space().find(end);
    if (mapping != nullptr && mapping->kind != MemoryKind::kVmm) break;
  }
  return bytes;
}

void AccessRecorder::tell(Lock&) {
  if (!record_) return;
  std::vector<Segment> segments;
  uintptr_t fault = 0;
  for (const bool write : {false, true}) {
    for (const auto& [begin, end] : (write ? writes_ : reads_).finish()) {
      segments.clear();
      // Whatever was taken away meanwhile is not in the list any more.
      address_space().translate(device_, begin, end - begin, write, &segments, &fault);
      for (const Segment& segment : segments) {
        if (write) {
          checker().write(segment);
        } else {
          checker().read(segment);
        }
      }
    }
  }
}

}  // namespace simgpu
