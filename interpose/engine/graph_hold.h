// SPDX-License-Identifier: Apache-2.0
#pragma once
// The buffers, and blocks of slabs, that a graph, or an instance of one, names, and so keeps where
// they are, and from others. Filled and emptied by the engine alone; its owner is whoever knows how
// long the graph lives.

#include <algorithm>
#include <cstdint>

#include "interpose/engine/buffer.h"
#include "interpose/life/heap.h"

namespace offload {

class GraphHold {
 public:
  // `id`: a buffer that came apart all the same (freed while it was being brought home) may be
  // another by now.
  struct Held {
    Buffer* buffer;  // null: a block
    Address block;   // of a buffer: 0
    uint64_t id;
    bool operator==(const Held&) const = default;
  };

  bool contains(const Held& held) const {
    const auto at = place(held);
    return at != held_.end() && *at == held;
  }
  // False: it was there already.
  bool add(const Held& held) {
    const auto at = place(held);
    if (at != held_.end() && *at == held) return false;
    held_.insert(at, held);
    return true;
  }
  bool empty() const { return held_.empty(); }
  void clear() { held_.clear(); }
  const Held* begin() const { return held_.data(); }
  const Held* end() const { return held_.data() + held_.size(); }

 private:
  static bool before(const Held& a, const Held& b) {
    if (a.buffer != b.buffer) return std::less<>{}(a.buffer, b.buffer);
    return a.block != b.block ? a.block < b.block : a.id < b.id;
  }
  OwnVector<Held>::iterator place(const Held& held) {
    return std::lower_bound(held_.begin(), held_.end(), held, before);
  }
  OwnVector<Held>::const_iterator place(const Held& held) const {
    return std::lower_bound(held_.begin(), held_.end(), held, before);
  }

  OwnVector<Held> held_;  // sorted
};

}  // namespace offload
