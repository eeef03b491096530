// SPDX-License-Identifier: Apache-2.0
#include "interpose/memory/slabs.h"

#include <algorithm>
#include <bit>

namespace offload {

namespace {
constexpr uint32_t kSteps = 8;  // classes to a doubling: at most an eighth is wasted
}  // namespace

// Classes: 512 to 4,096 bytes in steps of 512, then eight to each doubling.
uint32_t Slabs::class_of(uint64_t bytes) {
  const uint64_t units = (std::max<uint64_t>(bytes, 1) + kSmallest - 1) / kSmallest;
  if (units <= kSteps) return static_cast<uint32_t>(units - 1);
  const auto shift =
      static_cast<uint32_t>(std::bit_width(units - 1)) - 4;  // (units - 1) >> shift is in [8, 16)
  const uint64_t step = ((units - 1) >> shift) - kSteps;
  return static_cast<uint32_t>(kSteps + shift * kSteps + step);
}

uint64_t Slabs::class_bytes(uint32_t size_class) {
  if (size_class < kSteps) return (size_class + 1) * kSmallest;
  const uint32_t shift = (size_class - kSteps) / kSteps;
  const uint64_t step = (size_class - kSteps) % kSteps;
  return ((kSteps + step + 1) << shift) * kSmallest;
}

uint32_t Slabs::slab_granules(uint64_t block_bytes, uint64_t granularity, uint32_t largest) {
  // Small classes share one granule; large ones get the fewest granules that waste less than an
  // eighth at the end.
  for (uint32_t granules = 1; granules <= largest; ++granules) {
    const uint64_t bytes = granules * granularity;
    if (bytes >= block_bytes && (bytes % block_bytes) * 8 <= bytes) return granules;
  }
  return static_cast<uint32_t>((block_bytes + granularity - 1) / granularity);
}

OwnVector<Slab*>& Slabs::with_room(uint32_t size_class) {
  if (with_room_.size() <= size_class) with_room_.resize(size_class + 1);
  return with_room_[size_class];
}

void Slabs::list(Slab& slab) {
  if (slab.listed) return;
  with_room(slab.size_class).push_back(&slab);
  slab.listed = true;
}

void Slabs::unlist(Slab& slab) {
  if (!slab.listed) return;
  OwnVector<Slab*>& slabs = with_room(slab.size_class);
  slabs.erase(std::find(slabs.begin(), slabs.end(), &slab));
  slab.listed = false;
}

void Slabs::unlink(Slab& slab, uint32_t* link) {
  Block& block = slab.blocks[*link - 1];
  *link = block.next_free;
  block.next_free = 0;
  block.live = true;
  ++slab.live;
  if (slab.first_free == 0) unlist(slab);
}

Slab* Slabs::add(uint32_t size_class, Address address, uint32_t granules,
                 OwnVector<Extent*> extents, uint64_t bytes, const Fence& fence) {
  Slab* slab = own_new<Slab>();
  slab->address = address;
  slab->granules = granules;
  slab->size_class = size_class;
  slab->block_bytes = class_bytes(size_class);
  slab->extents = std::move(extents);
  const uint32_t count = static_cast<uint32_t>(bytes / slab->block_bytes);
  slab->blocks.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    slab->blocks[i].next_free = i + 1 < count ? i + 2 : 0;
    slab->blocks[i].fence = fence;
  }
  slab->first_free = 1;
  all_.push_back(slab);
  list(*slab);
  return slab;
}

void Slabs::put(BlockAt at) {
  Block& block = at.block();
  block.live = false;
  block.next_free = at.slab->first_free;
  at.slab->first_free = at.index + 1;
  --at.slab->live;
  list(*at.slab);
}

BlockAt Slabs::find(Slab& slab, Address address) {
  return {&slab, static_cast<uint32_t>((address - slab.address) / slab.block_bytes)};
}

Slab* Slabs::take_empty() {
  for (size_t i = 0; i < all_.size(); ++i) {
    Slab* slab = all_[i];
    if (slab->live != 0) continue;
    unlist(*slab);
    all_.erase(all_.begin() + static_cast<ptrdiff_t>(i));
    return slab;
  }
  return nullptr;
}

void Slabs::forget(Slab* slab) {
  slab->~Slab();
  own_free(slab);
}

}  // namespace offload
