// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engine/model/memory.h"

#include <algorithm>
#include <iterator>

#include "tests/unit/engine/model/failure.h"

namespace offload::model {

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a + 0x9e3779b97f4a7c15u + (b ^ (b << 25)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

Address Memory::reserve(uint64_t bytes) {
  const Address at = next_address_;
  next_address_ += bytes + (uint64_t{1} << 36);  // reservations never touch
  next_address_ &= ~((uint64_t{1} << 30) - 1);
  return at;
}

Handle Memory::create(Place place, uint64_t bytes) {
  if (place == Place::kDevice) {
    if (device_used_ + bytes > device_bytes_) return 0;
    device_used_ += bytes;
  }
  const Handle handle = next_handle_++;
  Physical& fresh = physical_[handle];
  fresh.place = place;
  fresh.cells.resize(bytes / kCellBytes);
  for (Cell& cell : fresh.cells) cell = mix(0xdead, next_poison_++);
  return handle;
}

void Memory::drop_if_unused(Handle handle) {
  const auto at = physical_.find(handle);
  if (at->second.references != 0 || at->second.mappings != 0) return;
  if (at->second.place == Place::kDevice) device_used_ -= at->second.cells.size() * kCellBytes;
  physical_.erase(at);
}

void Memory::release(Handle handle) {
  const auto at = physical_.find(handle);
  if (at == physical_.end() || at->second.references == 0) {
    fail(Failure::Kind::kMisuse, "release of memory that was released before");
  }
  --at->second.references;
  drop_if_unused(handle);
}

void Memory::map(Address at, uint64_t bytes, Handle handle) {
  const auto physical = physical_.find(handle);
  if (physical == physical_.end() || physical->second.references == 0) {
    fail(Failure::Kind::kMisuse, "map of released memory");
  }
  if (physical->second.cells.size() * kCellBytes != bytes) {
    fail(Failure::Kind::kMisuse, "map of a part of an allocation");
  }
  const auto next = mappings_.lower_bound(at);
  const bool after = next != mappings_.end() && next->first < at + bytes;
  const bool before =
      next != mappings_.begin() && std::prev(next)->first + std::prev(next)->second.bytes > at;
  if (after || before) fail(Failure::Kind::kMisuse, "map where something is mapped already");
  mappings_[at] = {bytes, handle};
  ++physical->second.mappings;
}

void Memory::unmap(Address at, uint64_t bytes) {
  const auto mapping = mappings_.find(at);
  if (mapping == mappings_.end() || mapping->second.bytes != bytes) {
    fail(Failure::Kind::kMisuse, "unmap of what is not one mapping");
  }
  const Handle handle = mapping->second.handle;
  mappings_.erase(mapping);
  --physical_.at(handle).mappings;
  drop_if_unused(handle);
}

Address Memory::pin(uint64_t bytes) {
  const Address at = reserve(bytes);
  const Handle handle = create(Place::kHost, bytes);
  map(at, bytes, handle);
  pinned_[at] = handle;
  return at;
}

void Memory::unpin(Address at) {
  const auto pinned = pinned_.find(at);
  if (pinned == pinned_.end()) fail(Failure::Kind::kMisuse, "unpin of what is not pinned");
  const Handle handle = pinned->second;
  pinned_.erase(pinned);
  unmap(at, physical_.at(handle).cells.size() * kCellBytes);
  release(handle);
}

void Memory::lose_pinned() {
  while (!pinned_.empty()) unpin(pinned_.begin()->first);
}

bool Memory::resolve(Address at, uint64_t bytes, std::vector<Run>* out) {
  out->clear();
  while (bytes > 0) {
    auto mapping = mappings_.upper_bound(at);
    if (mapping == mappings_.begin()) return false;
    --mapping;
    const uint64_t into = at - mapping->first;
    if (into >= mapping->second.bytes) return false;
    const uint64_t part = std::min(bytes, mapping->second.bytes - into);
    Physical& physical = physical_.at(mapping->second.handle);
    out->push_back({physical.cells.data() + into / kCellBytes, part / kCellBytes});
    at += part;
    bytes -= part;
  }
  return true;
}

uint64_t Memory::digest() const {
  uint64_t sum = mix(next_handle_, next_poison_);
  for (const auto& [handle, physical] : physical_) {
    uint64_t one = mix(handle, physical.references << 8 | physical.mappings);
    for (const Cell cell : physical.cells) one = mix(one, cell);
    sum += one;
  }
  for (const auto& [at, mapping] : mappings_) sum += mix(at, mapping.handle);
  return sum;
}

Handle Memory::shown_at(Address at) const {
  auto mapping = mappings_.upper_bound(at);
  if (mapping == mappings_.begin()) return 0;
  --mapping;
  return at - mapping->first < mapping->second.bytes ? mapping->second.handle : 0;
}

}  // namespace offload::model
