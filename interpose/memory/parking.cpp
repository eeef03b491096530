// SPDX-License-Identifier: Apache-2.0
#include "interpose/memory/parking.h"

#include <algorithm>

namespace offload {

void Parking::put(Buffer* buffer) {
  by_size_[buffer->granules].push_back(buffer);
  granules_ += buffer->granules;
  buffer->next = nullptr;
  buffer->previous = latest_;
  (latest_ != nullptr ? latest_->next : oldest_) = buffer;
  latest_ = buffer;
}

Buffer* Parking::remove(OwnVector<Buffer*>& list, size_t at) {
  Buffer* buffer = list[at];
  list.erase(list.begin() + static_cast<ptrdiff_t>(at));
  granules_ -= buffer->granules;
  (buffer->previous != nullptr ? buffer->previous->next : oldest_) = buffer->next;
  (buffer->next != nullptr ? buffer->next->previous : latest_) = buffer->previous;
  buffer->next = buffer->previous = nullptr;
  return buffer;
}

Buffer* Parking::take_oldest() {
  if (oldest_ == nullptr) return nullptr;
  OwnVector<Buffer*>& list = by_size_[oldest_->granules];
  const auto at = std::find(list.begin(), list.end(), oldest_);
  return remove(list, static_cast<size_t>(at - list.begin()));
}

}  // namespace offload
