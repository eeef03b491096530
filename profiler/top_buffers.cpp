// SPDX-License-Identifier: Apache-2.0
#include "profiler/top_buffers.h"

#include <algorithm>

#include "profiler/base/spin_guard.h"

namespace offload {

void TopBuffers::moved(std::uint64_t buffer_bytes, std::uint64_t bytes, bool out) {
  SpinGuard guard(lock_);
  Entry* end = entries_ + count_;
  Entry* entry = std::find_if(
      entries_, end, [&](const Entry& known) { return known.buffer_bytes == buffer_bytes; });
  if (entry == end && count_ < kTracked) {
    ++count_;
    *entry = Entry{.buffer_bytes = buffer_bytes};
  } else if (entry == end) {
    entry = std::min_element(entries_, end, [](const Entry& a, const Entry& b) {
      return a.moved_bytes < b.moved_bytes;
    });
    *entry = Entry{.buffer_bytes = buffer_bytes,
                   .moved_bytes = entry->moved_bytes,
                   .error_bytes = entry->moved_bytes};
  }
  entry->moved_bytes += bytes;
  ++(out ? entry->copies_out : entry->copies_in);
}

std::size_t TopBuffers::read(std::span<Entry> entries) const {
  SpinGuard guard(lock_, SpinGuard::kPatient);
  return static_cast<std::size_t>(
      std::partial_sort_copy(entries_, entries_ + count_, entries.begin(), entries.end(),
                             [](const Entry& a, const Entry& b) {
                               return a.moved_bytes != b.moved_bytes
                                          ? a.moved_bytes > b.moved_bytes
                                          : a.buffer_bytes > b.buffer_bytes;
                             }) -
      entries.begin());
}

}  // namespace offload
