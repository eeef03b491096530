// SPDX-License-Identifier: Apache-2.0
#include "interpose/memory/parking.h"

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

}  // namespace offload
