// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/host_parts.h"

#include <algorithm>

namespace offload {
namespace {

// So that devices that are never used cost little where there are many of them, and not much host
// memory.
constexpr uint64_t kMostWithheld = 8;  // of the limit: one part in so many

}  // namespace

void HostParts::start(uint64_t limit_bytes, HostShare& machine, uint32_t devices) {
  limit_bytes_ = limit_bytes;
  machine_ = &machine;
  devices_ = std::max<uint32_t>(devices, 1);
}

void HostParts::join(HostPart& part, uint64_t least_bytes) {
  const std::lock_guard lock(mutex_);
  least_bytes_ = std::max(least_bytes_, least_bytes);
  if (part.parts_ != nullptr) return;
  part.parts_ = this;
  part.next_ = first_;
  first_ = &part;
}

// What is neither taken nor kept for others. With the mutex.
uint64_t HostParts::left_for(const HostPart& part) const {
  uint64_t taken = 0;
  uint64_t kept = 0;
  uint64_t unknown = devices_;
  const auto missing = [this](uint64_t has) { return least_bytes_ - std::min(least_bytes_, has); };
  for (const HostPart* each = first_; each != nullptr; each = each->next_) {
    taken += each->pinned_bytes_;
    if (each != &part) kept += missing(each->pinned_bytes_);
    unknown -= std::min<uint64_t>(unknown, 1);
  }
  kept = std::min(kept + unknown * least_bytes_, limit_bytes_ / kMostWithheld);
  return limit_bytes_ - std::min(limit_bytes_, taken + kept);
}

uint64_t HostPart::take(uint64_t wanted_bytes, uint64_t unit_bytes) {
  const std::lock_guard lock(parts_->mutex_);
  const uint64_t wanted = std::min(wanted_bytes, parts_->left_for(*this)) / unit_bytes * unit_bytes;
  const uint64_t given = wanted == 0 ? 0 : parts_->machine_->take(wanted, unit_bytes);
  pinned_bytes_ += given;
  return given;
}

void HostPart::give(uint64_t bytes) {
  const std::lock_guard lock(parts_->mutex_);
  pinned_bytes_ -= std::min(pinned_bytes_, bytes);
  parts_->machine_->give(bytes);
}

}  // namespace offload
