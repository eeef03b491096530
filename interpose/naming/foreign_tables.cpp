// SPDX-License-Identifier: Apache-2.0
#include "interpose/naming/foreign_tables.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace offload {

ForeignTables& foreign_tables() {
  static ForeignTables* const all = own_new<ForeignTables>();
  return *all;
}

void ForeignTables::erase_covered(Address begin, Address end) {
  auto at = by_begin_.lower_bound(begin);
  while (at != by_begin_.end() && at->first < end) {
    if (at->second.end > end) {
      ++at;
      continue;
    }
    words_ -= at->second.words.size();
    at = by_begin_.erase(at);
  }
}

bool ForeignTables::set(Address begin, Address end, OwnVector<Address> words) {
  const std::lock_guard lock(mutex_);
  if (by_begin_.size() >= kMostTables || words_ + words.size() > kMostWords) return false;
  erase_covered(begin, end);
  words_ += words.size();
  const auto [at, is_new] = by_begin_.try_emplace(begin, Table{end, {}});
  Table& table = at->second;  // one that began here and was longer keeps its names
  table.words.insert(table.words.end(), words.begin(), words.end());
  longest_ = std::max(longest_, table.end - begin);
  highest_.store(std::max(highest_.load(std::memory_order_relaxed), table.end),
                 std::memory_order_release);
  lowest_.store(std::min(lowest_.load(std::memory_order_relaxed), begin),
                std::memory_order_release);
  return true;
}

void ForeignTables::forget(Address begin, Address end) {
  const std::lock_guard lock(mutex_);
  erase_covered(begin, end);
}

void ForeignTables::read(Address begin, Address end, OwnVector<Address>* words) const {
  const std::lock_guard lock(mutex_);
  auto at = by_begin_.lower_bound(begin > longest_ ? begin - longest_ : 0);
  for (; at != by_begin_.end() && at->first < end; ++at) {
    if (at->second.end > begin)
      words->insert(words->end(), at->second.words.begin(), at->second.words.end());
  }
}

}  // namespace offload
