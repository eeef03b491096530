// SPDX-License-Identifier: Apache-2.0
#include "interpose/engine/tables.h"

#include <iterator>
#include <utility>

namespace offload {

void Tables::erase_range(Address begin, Address end) {
  auto at = by_begin_.lower_bound(begin);
  if (at != by_begin_.begin() && std::prev(at)->second.end > begin) --at;
  while (at != by_begin_.end() && at->first < end) at = by_begin_.erase(at);
  count_.store(by_begin_.size(), std::memory_order_relaxed);
}

void Tables::set(Address begin, Address end, OwnVector<Buffer*> named) {
  const std::lock_guard<std::mutex> lock(mutex_);
  erase_range(begin, end);
  if (!named.empty()) by_begin_[begin] = Table{end, std::move(named)};
  count_.store(by_begin_.size(), std::memory_order_relaxed);
}

void Tables::forget(Address begin, Address end) {
  if (empty()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  erase_range(begin, end);
}

void Tables::name(ThreadPins& pins, Address begin, Address end) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto at = by_begin_.upper_bound(begin);
  if (at != by_begin_.begin() && std::prev(at)->second.end > begin) --at;
  for (; at != by_begin_.end() && at->first < end; ++at) {
    for (Buffer* buffer : at->second.named) pins.add(buffer);
  }
}

}  // namespace offload
