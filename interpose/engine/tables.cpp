// SPDX-License-Identifier: Apache-2.0
#include "interpose/engine/tables.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace offload {

// Only what is covered whole: of a table that is overwritten in part, the rest still names.
void Tables::erase_covered(Address begin, Address end) {
  auto at = by_begin_.lower_bound(begin);
  while (at != by_begin_.end() && at->first < end) {
    at = at->second.end <= end ? by_begin_.erase(at) : std::next(at);
  }
  count_.store(by_begin_.size(), std::memory_order_relaxed);
}

void Tables::set(Address begin, Address end, OwnVector<Buffer*> named) {
  const std::lock_guard<std::mutex> lock(mutex_);
  erase_covered(begin, end);
  if (named.empty()) return;
  const auto [at, is_new] = by_begin_.try_emplace(begin, Table{end, {}});
  Table& table = at->second;  // one that began here and was longer keeps its names
  table.named.insert(table.named.end(), named.begin(), named.end());
  longest_ = std::max(longest_, table.end - begin);
  count_.store(by_begin_.size(), std::memory_order_relaxed);
}

void Tables::forget(Address begin, Address end) {
  if (empty()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  erase_covered(begin, end);
}

void Tables::name(ThreadPins& pins, Address begin, Address end) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  // A table that begins before may reach into the range.
  auto at = by_begin_.lower_bound(begin > longest_ ? begin - longest_ : 0);
  for (; at != by_begin_.end() && at->first < end; ++at) {
    if (at->second.end <= begin) continue;
    for (Buffer* buffer : at->second.named) pins.add(buffer);
  }
}

}  // namespace offload
