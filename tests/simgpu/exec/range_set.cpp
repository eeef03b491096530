// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/range_set.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace simgpu {

void RangeSet::add(uintptr_t begin, uintptr_t end) {
  for (Run& run : open_) {
    if (begin > run.end || end < run.begin || run.end == 0) continue;
    run.begin = std::min(run.begin, begin);
    run.end = std::max(run.end, end);
    return;
  }
  Run& replaced = open_[next_];
  next_ = (next_ + 1) % open_.size();
  if (replaced.end != 0) close(replaced);
  replaced = {begin, end};
}

RangeSet::Chunk* RangeSet::find(uintptr_t index) const {
  Recent& recent = recent_[index % recent_.size()];
  if (recent.index == index) return recent.chunk;
  const auto found = short_.find(index);
  if (found == short_.end()) return nullptr;
  recent = {index, found->second.get()};
  return recent.chunk;
}

void RangeSet::close(const Run& run) {
  if (run.end - run.begin >= kChunk) {
    insert(run.begin, run.end);
    return;
  }
  for (uintptr_t at = run.begin; at < run.end;) {
    const uintptr_t index = at / kChunk;
    Chunk* chunk = find(index);
    if (chunk == nullptr) chunk = (short_[index] = std::make_unique<Chunk>()).get();
    const uintptr_t first = at % 64;
    const uintptr_t count = std::min(64 - first, run.end - at);
    const uint64_t mask = count == 64 ? ~uint64_t{0} : ((uint64_t{1} << count) - 1) << first;
    chunk->bits[at % kChunk / 64] |= mask;
    at += count;
  }
}

void RangeSet::insert(uintptr_t begin, uintptr_t end) {
  auto it = long_.upper_bound(begin);
  if (it != long_.begin() && std::prev(it)->second >= begin) --it;
  while (it != long_.end() && it->first <= end) {
    begin = std::min(begin, it->first);
    end = std::max(end, it->second);
    it = long_.erase(it);
  }
  long_.emplace(begin, end);
}

uintptr_t RangeSet::known_until(uintptr_t at, uintptr_t end) const {
  for (const Run& run : open_) {
    if (at >= run.begin && at < run.end) at = run.end;
  }
  while (at < end) {
    const Chunk* chunk = find(at / kChunk);
    if (chunk == nullptr) break;
    const uintptr_t ones =
        static_cast<uintptr_t>(std::countr_one(chunk->bits[at % kChunk / 64] >> at % 64));
    if (ones == 0) break;
    at += ones;
  }
  if (const auto it = long_.upper_bound(at); it != long_.begin()) {
    at = std::max(at, std::prev(it)->second);
  }
  return at;
}

bool RangeSet::contains(uintptr_t begin, uintptr_t end) const {
  for (uintptr_t at = begin; at < end;) {
    const uintptr_t known = known_until(at, end);
    if (known == at) return false;
    at = known;
  }
  return true;
}

const std::map<uintptr_t, uintptr_t>& RangeSet::finish() {
  for (Run& run : open_) {
    if (run.end != 0) close(run);
    run = {};
  }
  for (const auto& [index, chunk] : short_) {
    for (uintptr_t at = 0; at < kChunk;) {
      const uint64_t rest = chunk->bits[at / 64] >> at % 64;
      if (rest == 0) {
        at = (at / 64 + 1) * 64;
        continue;
      }
      at += static_cast<uintptr_t>(std::countr_zero(rest));
      uintptr_t end = at;
      // A run may go on in the next words.
      do {
        end += static_cast<uintptr_t>(std::countr_one(chunk->bits[end / 64] >> end % 64));
      } while (end < kChunk && end % 64 == 0 && (chunk->bits[end / 64] & 1) != 0);
      insert(index * kChunk + at, index * kChunk + end);
      at = end;
    }
  }
  short_.clear();
  recent_ = {};
  return long_;
}

}  // namespace simgpu
