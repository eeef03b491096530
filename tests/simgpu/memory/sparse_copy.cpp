// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/memory/sparse_copy.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace simgpu {

namespace {

constexpr size_t kWorthLooking = 64 << 10;  // below that a look-up costs more than it saves

// Calls visit(begin, bytes, touched) for the pieces of [offset, offset + bytes), relative to
// offset.
template <class Visit>
void for_each_piece(const PhysicalMemory& physical, uint64_t offset, size_t bytes, Visit visit) {
  const auto end = static_cast<off_t>(offset + bytes);
  auto at = static_cast<off_t>(offset);
  const off_t start = at;
  while (at < end) {
    off_t data = lseek(physical.fd(), at, SEEK_DATA);
    if (data < 0 || data > end) data = end;
    if (data > at) visit(static_cast<size_t>(at - start), static_cast<size_t>(data - at), false);
    at = data;
    if (at >= end) break;
    off_t hole = lseek(physical.fd(), at, SEEK_HOLE);
    if (hole < 0 || hole > end) hole = end;
    visit(static_cast<size_t>(at - start), static_cast<size_t>(hole - at), true);
    at = hole;
  }
}

MemoryPiece advance(const MemoryPiece& piece, size_t bytes) {
  return {piece.physical, piece.offset + bytes, piece.data + bytes};
}

}  // namespace

bool is_touched(const PhysicalMemory& physical, uint64_t offset, size_t bytes) {
  const off_t hole = lseek(physical.fd(), static_cast<off_t>(offset), SEEK_HOLE);
  return hole >= static_cast<off_t>(offset + bytes);
}

void sparse_zero(const MemoryPiece& to, size_t bytes) {
  if (to.physical == nullptr || bytes < kWorthLooking) {
    std::memset(to.data, 0, bytes);
    return;
  }
  for_each_piece(*to.physical, to.offset, bytes, [&](size_t begin, size_t count, bool touched) {
    if (touched) std::memset(to.data + begin, 0, count);
  });
}

void sparse_copy(const MemoryPiece& to, const MemoryPiece& from, size_t bytes) {
  if (from.physical == nullptr || bytes < kWorthLooking) {
    std::memmove(to.data, from.data, bytes);
    return;
  }
  for_each_piece(*from.physical, from.offset, bytes, [&](size_t begin, size_t count, bool touched) {
    if (touched) {
      std::memmove(to.data + begin, from.data + begin, count);
    } else {
      sparse_zero(advance(to, begin), count);
    }
  });
}

}  // namespace simgpu
