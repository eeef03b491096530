// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/memory/allotments.h"

#include "tests/simgpu/exec/name_log.h"
#include "tests/simgpu/memory/address_space.h"
#include "tests/simgpu/memory/sparse_copy.h"

namespace simgpu {

void Allotments::add(uintptr_t begin, size_t bytes) {
  auto it = dead_.lower_bound(begin);
  if (it != dead_.begin() && std::prev(it)->first + std::prev(it)->second > begin) --it;
  while (it != dead_.end() && it->first < begin + bytes) it = dead_.erase(it);
  auto made = std::make_shared<Allotment>(Allotment{begin, bytes, ++births_});
  name_log().born(*made);
  live_.insert_or_assign(begin, std::move(made));
}

void Allotments::remove(uintptr_t begin) {
  const auto it = live_.find(begin);
  if (it == live_.end()) return;
  name_log().freed(*it->second);
  dead_[begin] = it->second->bytes;
  live_.erase(it);
}

bool Allotments::is_dead(uintptr_t address) const {
  const auto it = dead_.upper_bound(address);
  return it != dead_.begin() && address - std::prev(it)->first < std::prev(it)->second;
}

AllotmentRef Allotments::find(uintptr_t address) const {
  auto it = live_.upper_bound(address);
  if (it == live_.begin()) return nullptr;
  --it;
  return address - it->second->begin < it->second->bytes ? it->second : nullptr;
}

Allotments& allotments() {
  static auto* const instance = new Allotments;
  return *instance;
}

void first_use(Allotment& allotment, int device) {
  if (!allotment.fresh) return;
  allotment.fresh = false;
  std::vector<Segment> segments;
  uintptr_t fault = 0;
  address_space().translate(device, allotment.begin, allotment.bytes, true, &segments, &fault);
  for (const Segment& segment : segments) {
    Mapping& mapping = *segment.mapping;
    sparse_zero({mapping.physical, mapping.physical ? mapping.offset_of(segment.address) : 0,
                 segment.data()},
                segment.bytes);
  }
}

}  // namespace simgpu

extern "C" __attribute__((visibility("default"))) void simgpu_program_allocated(uintptr_t begin,
                                                                                size_t bytes) {
  const simgpu::Lock lock(simgpu::driver_mutex());
  simgpu::allotments().add(begin, bytes);
}

extern "C" __attribute__((visibility("default"))) void simgpu_program_frees(uintptr_t begin) {
  const simgpu::Lock lock(simgpu::driver_mutex());
  simgpu::allotments().remove(begin);
}
