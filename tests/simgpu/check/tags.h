// SPDX-License-Identifier: Apache-2.0
#pragma once
// The checker's memory of operations: enough to name them in a report, and for copies where the
// bytes went. A ring: very old ones are forgotten.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simgpu/check/access_map.h"

namespace simgpu {

enum class OpClass : uint8_t { kKernel, kFill, kCopy, kAllocation, kFree };

struct CopiedPiece {
  int from_space;
  uint64_t from;
  int to_space;
  uint64_t to;
  uint64_t bytes;
};

// Who has read what a copy wrote, while it was still that.
struct Reader {
  TagId tag;
  int space;
  uint64_t begin;
  uint64_t end;
};

struct Tag {
  TagId id = 0;
  OpClass kind = OpClass::kKernel;
  const char* name = "";
  uint64_t stream_id = 0;
  uint64_t number = 0;
  std::vector<CopiedPiece> pieces;  // copies only, as are the readers
  std::vector<Reader> readers;
};

class Tags {
 public:
  Tags();
  TagId add(OpClass kind, std::string_view name, uint64_t stream_id, uint64_t number);
  // Null: forgotten.
  Tag* find(TagId id);
  // "kernel scale (#12 of stream 3)"
  std::string describe(TagId id);

 private:
  static constexpr size_t kRemembered = 1 << 15;
  std::vector<Tag> ring_;
  TagId last_ = 0;
};

}  // namespace simgpu
