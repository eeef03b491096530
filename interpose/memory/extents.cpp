// SPDX-License-Identifier: Apache-2.0
#include "interpose/memory/extents.h"

#include <algorithm>
#include <bit>

namespace offload {

Extents::Extents(Port& port, Statistics& statistics) : port_(port), statistics_(statistics) {}

Status Extents::initialise(uint64_t granularity, uint64_t limit_bytes, uint64_t most_bytes,
                           uint32_t largest_granules) {
  granularity_ = granularity;
  limit_ = most_ = limit_bytes / granularity * granularity;
  largest_ = std::min<uint32_t>(std::bit_floor(largest_granules), 1u << (kSizes - 1));
  // Room for every extent's home, and slack so that ranges of mixed sizes always fit.
  return homes_.reserve(port_,
                        std::max(2 * (most_bytes / granularity * granularity), 64 * granularity),
                        granularity, 0);
}

OwnDeque<Extent*>& Extents::list(uint32_t granules) {
  return pool_[std::countr_zero(granules)];
}

uint32_t Extents::fitting(uint64_t granules) const {
  return static_cast<uint32_t>(std::min<uint64_t>(std::bit_floor(granules), largest_));
}

Extent* Extents::begin_create(uint32_t granules) {
  const uint64_t bytes = granules * granularity_;
  if (uncreated_bytes() < bytes) return nullptr;
  const Address home = homes_.take(granules);
  if (home == 0) {
    refused(bytes);
    return nullptr;
  }
  Extent* extent = nullptr;
  if (recycled_.empty()) {
    extent = own_new<Extent>();
  } else {
    extent = recycled_.back();
    recycled_.pop_back();
    *extent = Extent{};
  }
  extent->home = home;
  extent->granules = granules;
  mapped_ += bytes;
  return extent;
}

bool Extents::make(Extent* extent) const {
  const uint64_t bytes = bytes_of(*extent);
  if (port_.create(Place::kDevice, bytes, &extent->handle) != Status::kOk) return false;
  if (port_.map(extent->home, bytes, extent->handle, Place::kDevice, false) == Status::kOk)
    return true;
  port_.release(extent->handle);
  return false;
}

Extent* Extents::end_create(Extent* extent, bool made) {
  const uint64_t bytes = bytes_of(*extent);
  if (made) {
    statistics_.mapped_bytes.add(bytes);
    statistics_.created_extents.add();
    return extent;
  }
  mapped_ -= bytes;
  homes_.give_back(extent->home, extent->granules);
  recycled_.push_back(extent);
  refused(bytes);
  return nullptr;
}

// Whatever the reason, asking for the same again at once is no use: whoever needs room has to make
// it.
void Extents::refused(uint64_t bytes) {
  ceiling_ = std::min(ceiling_, mapped_ + bytes - granularity_);
}

bool Extents::unmake(Extent* extent) const {
  if (port_.unmap(extent->home, bytes_of(*extent)) != Status::kOk) return false;
  port_.release(extent->handle);
  return true;
}

bool Extents::end_destroy(Extent* extent, bool unmade) {
  if (!unmade) {
    put(extent);
    return false;
  }
  const uint64_t bytes = bytes_of(*extent);
  homes_.give_back(extent->home, extent->granules);
  mapped_ -= bytes;
  statistics_.mapped_bytes.subtract(bytes);
  recycled_.push_back(extent);
  return true;
}

void Extents::put(Extent* extent) {
  extent->owner = nullptr;
  list(extent->granules).push_back(extent);
  pooled_ += bytes_of(*extent);
}

Extent* Extents::take(uint32_t granules) {
  OwnDeque<Extent*>& same = list(granules);
  if (same.empty()) return nullptr;
  Extent* extent = same.front();
  same.pop_front();
  pooled_ -= bytes_of(*extent);
  return extent;
}

bool Extents::take(Extent* extent) {
  OwnDeque<Extent*>& same = list(extent->granules);
  const auto at = std::find(same.begin(), same.end(), extent);
  if (at == same.end()) return false;
  same.erase(at);
  pooled_ -= bytes_of(*extent);
  return true;
}

}  // namespace offload
