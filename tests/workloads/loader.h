// SPDX-License-Identifier: Apache-2.0
#pragma once
// Batches on their way to the device, through two pinned buffers that are refilled only once their
// copy has ended.

#include <array>

#include "tests/workloads/device.h"
#include "tests/workloads/ops/ops.h"
#include "tests/workloads/text.h"

namespace gpt {

struct Batch {
  Tensor tokens;   // int, [batch, sequence]
  Tensor targets;  // likewise
  Shape shape;
};

class Loader {
 public:
  // `largest` bounds the shapes asked for later.
  Loader(const Text& text, uint64_t seed, Shape largest);

  // The next training batch of this shape, or the index-th of the evaluation's.
  Batch train(Queue& queue, Shape shape);
  Batch evaluate(Queue& queue, Shape shape, uint64_t index);

 private:
  struct Slot {
    explicit Slot(int64_t rows) : tokens(rows), targets(rows) {}
    PinnedArray<int> tokens;
    PinnedArray<int> targets;
    Event copied;
    bool used = false;
  };

  Batch load(Queue& queue, Shape shape, bool evaluation, uint64_t index);

  const Text& text_;
  uint64_t seed_;
  std::array<Slot, 2> slots_;
  uint64_t loads_ = 0;
  uint64_t trained_ = 0;
};

}  // namespace gpt
