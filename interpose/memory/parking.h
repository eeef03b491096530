// SPDX-License-Identifier: Apache-2.0
#pragma once
// Freed buffers, kept mapped and fenced for the next request of their size: a steady loop makes no
// mapping call. Under the engine's mutex.

#include <algorithm>
#include <cstdint>

#include "interpose/engine/buffer.h"

namespace offload {

class Parking {
 public:
  void put(Buffer* buffer);
  // One of `granules`, or at most an eighth more; the latest for which `suits` says true, else the
  // latest. Null: none.
  template <typename Predicate>
  Buffer* take(uint32_t granules, Predicate&& suits) {
    const auto first = by_size_.lower_bound(granules);
    for (auto list = first; list != by_size_.end() && list->first <= granules + granules / 8;
         ++list) {
      OwnVector<Buffer*>& same = list->second;
      if (same.empty()) continue;
      size_t chosen = same.size() - 1;
      for (size_t looked = 0; looked < kLookedAt && looked < same.size(); ++looked) {
        if (!suits(*same[same.size() - 1 - looked])) continue;
        chosen = same.size() - 1 - looked;
        break;
      }
      return remove(same, chosen);
    }
    return nullptr;
  }
  // The one parked longest of those for which `may_go` says true. Null: none.
  template <typename Predicate>
  Buffer* take_oldest(Predicate&& may_go) {
    Buffer* buffer = oldest_;
    while (buffer != nullptr && !may_go(*buffer)) buffer = buffer->next;
    if (buffer == nullptr) return nullptr;
    OwnVector<Buffer*>& list = by_size_[buffer->granules];
    const auto at = std::find(list.begin(), list.end(), buffer);
    return remove(list, static_cast<size_t>(at - list.begin()));
  }
  uint64_t granules() const { return granules_; }
  template <typename Visitor>
  void for_each(Visitor&& visit) const {  // oldest first
    for (const Buffer* buffer = oldest_; buffer != nullptr; buffer = buffer->next) visit(*buffer);
  }

 private:
  static constexpr size_t kLookedAt = 8;
  Buffer* remove(OwnVector<Buffer*>& list, size_t at);

  OwnMap<uint32_t, OwnVector<Buffer*>> by_size_;
  Buffer* oldest_ = nullptr;  // a list by age through next and previous
  Buffer* latest_ = nullptr;
  uint64_t granules_ = 0;
};

}  // namespace offload
