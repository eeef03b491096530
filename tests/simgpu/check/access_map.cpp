// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/check/access_map.h"

namespace simgpu {

void AccessMap::split(uint64_t at) {
  auto it = nodes_.lower_bound(at);
  if (it == nodes_.begin() || (it != nodes_.end() && it->first == at)) return;
  --it;
  if (it->second.end <= at) return;
  nodes_.emplace_hint(std::next(it), at, it->second);
  it->second.end = at;
}

void AccessMap::fill(uint64_t begin, uint64_t end) {
  split(begin);
  split(end);
  uint64_t at = begin;
  auto it = nodes_.lower_bound(begin);
  while (at < end) {
    if (it == nodes_.end() || it->first > at) {
      const uint64_t gap_end = it == nodes_.end() || it->first > end ? end : it->first;
      it = nodes_.emplace_hint(it, at, Node{gap_end, {}});
    }
    at = it->second.end;
    ++it;
  }
}

void AccessMap::erase(uint64_t begin, uint64_t end) {
  split(begin);
  split(end);
  nodes_.erase(nodes_.lower_bound(begin), nodes_.lower_bound(end));
}

void AccessMap::assign(uint64_t begin, uint64_t end, Access access) {
  erase(begin, end);
  // Neighbours with the same history are one interval.
  auto next = nodes_.lower_bound(end);
  if (next != nodes_.end() && next->first == end && next->second.access == access) {
    end = next->second.end;
    next = nodes_.erase(next);
  }
  if (next != nodes_.begin()) {
    auto previous = std::prev(next);
    if (previous->second.end == begin && previous->second.access == access) {
      previous->second.end = end;
      return;
    }
  }
  nodes_.emplace_hint(next, begin, Node{end, std::move(access)});
}

}  // namespace simgpu
