// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies and fills, of one or more rows.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/simgpu/exec/op.h"
#include "tests/simgpu/memory/address_space.h"
#include "tests/simgpu/memory/allotments.h"
#include "tests/simgpu/memory/sparse_copy.h"

namespace simgpu {

// One side of a copy.
struct Place {
  uintptr_t address = 0;
  bool pageable = false;  // host memory that the device does not know
  // Through whose eyes the memory is seen; -1: those of the stream's device, or, for what
  // cuMemAlloc gave, of the device that it is on (a copy between devices needs no peer access).
  int device = -1;
  size_t pitch = 0;  // from row to row
  size_t slice = 0;  // from plane to plane
};

struct Extent {
  size_t width = 0;  // bytes
  size_t height = 1;
  size_t depth = 1;
  size_t bytes() const { return width * height * depth; }
};

class CopyOp : public Op {
 public:
  // `staged`: the source's bytes, taken when the copy was submitted, rows packed; `from` is then
  // ignored.
  CopyOp(Place to, Place from, Extent extent, std::vector<std::byte> staged);

  void submitted() override;
  void run(Lock& lock) override;
  Cost cost() const override;
  std::string describe() const override;

 private:
  struct Piece {
    MemoryPiece memory;
    size_t bytes;
  };
  struct Row {
    std::vector<Piece> to;
    std::vector<Piece> from;
  };
  bool resolve(std::vector<Row>* rows);
  static void move(const Row& row);

  Place to_;
  Place from_;
  Extent extent_;
  std::vector<std::byte> staged_;
  bool to_device_;  // for the direction, as it was when submitted
  bool from_device_;
  AllotmentRef to_allotment_;  // the program's allocations, as they were when it was submitted
  AllotmentRef from_allotment_;
};

class FillOp : public Op {
 public:
  // `value` of `element` bytes (1, 2 or 4) over `width` bytes of each row.
  FillOp(uintptr_t address, size_t pitch, size_t width, size_t height, uint32_t value,
         size_t element);

  void submitted() override;
  void run(Lock& lock) override;
  Cost cost() const override;
  std::string describe() const override { return "fill"; }

 private:
  uintptr_t address_;
  size_t pitch_;
  size_t width_;
  size_t height_;
  uint32_t value_;
  size_t element_;
  AllotmentRef allotment_;
};

}  // namespace simgpu
