// SPDX-License-Identifier: Apache-2.0
#pragma once
// What has happened to each byte of one physical memory: the last write, the reads since, and
// whether the content can be trusted. Intervals, split at need; a write makes one interval again of
// what it covers. Not thread-safe.

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace simgpu {

using TagId = uint64_t;  // an operation that the checker has seen; 0: none

// One operation's use of something: enough to ask a clock whether it is known to be finished.
struct Use {
  uint32_t agent = 0;
  uint64_t number = 0;  // 0: none
  TagId tag = 0;
  bool operator==(const Use&) const = default;
};

enum class Taint : uint8_t {
  kNone,
  kUnwritten,  // never written since it was allocated
  kRaced,      // written by a copy whose source changed, or may have changed, meanwhile
};

struct Access {
  Use write;
  std::vector<Use> reads;
  Taint taint = Taint::kNone;
  TagId taint_copy = 0;   // kRaced: the copy
  TagId taint_other = 0;  // kRaced: what it raced with
  bool operator==(const Access&) const = default;
};

class AccessMap {
 public:
  struct Node {
    uint64_t end;
    Access access;
  };
  using Iterator = std::map<uint64_t, Node>::iterator;

  // Splits so that intervals begin at `begin` and end at `end`, fills gaps with empty ones, and
  // calls visit(begin, end, access) for each in between; visit may change the access.
  template <class Visit>
  void update(uint64_t begin, uint64_t end, Visit visit) {
    fill(begin, end);
    for (auto it = nodes_.find(begin); it != nodes_.end() && it->first < end; ++it) {
      visit(it->first, it->second.end, it->second.access);
    }
  }

  // Everything in [begin, end) becomes one interval.
  void assign(uint64_t begin, uint64_t end, Access access);
  // Nothing is known of [begin, end) any more.
  void erase(uint64_t begin, uint64_t end);

  size_t size() const { return nodes_.size(); }

 private:
  void split(uint64_t at);
  void fill(uint64_t begin, uint64_t end);

  std::map<uint64_t, Node> nodes_;
};

}  // namespace simgpu
