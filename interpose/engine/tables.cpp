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

void Tables::set(Address begin, Address end, OwnVector<Address> words) {
  const std::lock_guard<std::mutex> lock(mutex_);
  erase_covered(begin, end);
  if (words.empty()) return;
  const auto [at, is_new] = by_begin_.try_emplace(begin, Table{end, {}});
  Table& table = at->second;  // one that began here and was longer keeps its names
  table.words.insert(table.words.end(), words.begin(), words.end());
  longest_ = std::max(longest_, table.end - begin);
  count_.store(by_begin_.size(), std::memory_order_relaxed);
}

void Tables::forget(Address begin, Address end) {
  if (empty()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  erase_covered(begin, end);
}

void Tables::read(Address begin, Address end, OwnVector<Address>* words) const {
  if (empty()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  auto at = by_begin_.lower_bound(begin > longest_ ? begin - longest_ : 0);
  for (; at != by_begin_.end() && at->first < end; ++at) {
    if (at->second.end > begin) {
      words->insert(words->end(), at->second.words.begin(), at->second.words.end());
    }
  }
}

void Tables::name(ThreadPins& pins, Address address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  uint32_t looked = 0;
  name_level(pins, address, 0, &looked);
}

void Tables::name_level(ThreadPins& pins, Address address, int level, uint32_t* looked) const {
  constexpr int kLevels = 4;                // of tables of tables
  constexpr uint32_t kMostWords = 1 << 18;  // of one op: more may be anything, so all is named
  const Address end = window_.reach(address, kLargest);
  // A table that begins before may reach into the range.
  auto at = by_begin_.lower_bound(address > longest_ ? address - longest_ : 0);
  for (; at != by_begin_.end() && at->first < end; ++at) {
    if (at->second.end <= address) continue;
    for (const Address word : at->second.words) {
      if (++*looked > kMostWords) {
        pins.overflow.store(true, std::memory_order_seq_cst);
        return;
      }
      const PageEntry entry = window_.lookup(word);
      if (entry == nullptr) continue;
      const bool in_slab = entry == Window::tables();
      if (!in_slab) pins.add(entry);
      if (level + 1 < kLevels && (in_slab || entry->names_others.load(std::memory_order_relaxed))) {
        name_level(pins, word, level + 1, looked);
      }
    }
  }
}

}  // namespace offload
