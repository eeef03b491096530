// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/memory/address_space.h"

#include <algorithm>

#include "tests/simgpu/memory/window.h"

namespace simgpu {

AddressSpace::AddressSpace() : addresses_(window().begin, window().end) {}

AddressSpace& address_space() {
  static auto* instance = new AddressSpace;
  return *instance;
}

Mapping* AddressSpace::insert(Mapping mapping) {
  const uintptr_t begin = mapping.begin;
  return &mappings_.emplace(begin, std::move(mapping)).first->second;
}

void AddressSpace::erase(Mapping* mapping) {
  mappings_.erase(mapping->begin);
}

Mapping* AddressSpace::find(uintptr_t address) {
  auto it = mappings_.upper_bound(address);
  if (it == mappings_.begin()) return nullptr;
  --it;
  return address < it->second.end() ? &it->second : nullptr;
}

Mapping* AddressSpace::next(uintptr_t address) {
  auto it = mappings_.lower_bound(address);
  return it == mappings_.end() ? nullptr : &it->second;
}

bool AddressSpace::overlaps(uintptr_t begin, size_t bytes) {
  if (find(begin) != nullptr) return true;
  const Mapping* after = next(begin);
  return after != nullptr && after->begin < begin + bytes;
}

bool AddressSpace::translate(int device, uintptr_t address, size_t bytes, bool write,
                             std::vector<Segment>* segments, uintptr_t* fault) {
  while (bytes > 0) {
    Mapping* mapping = find(address);
    const CUmemAccess_flags access =
        mapping ? mapping->access[device] : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    const bool allowed = access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
                         (access == CU_MEM_ACCESS_FLAGS_PROT_READ && !write);
    if (!allowed || !mapping->live) {
      *fault = address;
      return false;
    }
    const size_t here = std::min(bytes, static_cast<size_t>(mapping->end() - address));
    segments->push_back({mapping, address, here});
    address += here;
    bytes -= here;
  }
  return true;
}

bool AddressSpace::is_one_range(uintptr_t address, size_t bytes) {
  const Mapping* mapping = find(address);
  if (mapping == nullptr) return false;
  if (mapping->kind != MemoryKind::kVmm) {
    return address - mapping->begin + bytes <= mapping->bytes;
  }
  const uintptr_t end = address + bytes;
  while (mapping->end() < end) {
    mapping = find(mapping->end());
    if (mapping == nullptr || mapping->kind != MemoryKind::kVmm) return false;
  }
  return true;
}

std::vector<Mapping*> AddressSpace::owned_by(const Context* context) {
  std::vector<Mapping*> owned;
  for (auto& [begin, mapping] : mappings_) {
    if (mapping.context == context && mapping.kind != MemoryKind::kPool) owned.push_back(&mapping);
  }
  return owned;
}

}  // namespace simgpu
