// SPDX-License-Identifier: Apache-2.0
#pragma once
// Points on streams and sets of them. A point (stream, position) stands for "all that was submitted
// to this stream up to this position"; any event recorded there later stands for it too, so that no
// event is recorded per op. Plain values; no locks, no driver calls.

#include <cstdint>

#include "interpose/life/heap.h"

namespace offload {

using StreamIndex = uint32_t;  // dense, per device; the engine's own lanes have indices too
inline constexpr StreamIndex kNoStream = ~StreamIndex{0};
#ifdef OFFLOAD_DROPPABLE_CLAUSES
inline constexpr StreamIndex kMaxStreams = 16;
#else
inline constexpr StreamIndex kMaxStreams = 4096;
#endif

struct Point {
  StreamIndex stream = kNoStream;
  uint64_t position = 0;
};

// At most one point per stream; merging keeps the later one.
class Fence {
 public:
  void add(Point point) {
    for (Point& known : points_) {
      if (known.stream == point.stream) {
        if (known.position < point.position) known.position = point.position;
        return;
      }
    }
    points_.push_back(point);
  }
  void add(const Fence& other) {
    for (const Point& point : other.points_) add(point);
  }
  void clear() { points_.clear(); }
  bool empty() const { return points_.empty(); }
  const Point* begin() const { return points_.data(); }
  const Point* end() const { return points_.data() + points_.size(); }
  template <typename Predicate>
  void remove_if(Predicate&& gone) {
    size_t kept = 0;
    for (size_t i = 0; i < points_.size(); ++i) {
      if (!gone(points_[i])) points_[kept++] = points_[i];
    }
    points_.resize(kept);
  }

 private:
  OwnVector<Point> points_;
};

}  // namespace offload
