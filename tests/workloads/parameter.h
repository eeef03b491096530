// SPDX-License-Identifier: Apache-2.0
#pragma once
// A trainable matrix or vector, with its gradient and the optimizer's state.

#include <memory>
#include <utility>

#include "tests/workloads/tape.h"
#include "tests/workloads/tensor.h"

namespace gpt {

struct Parameter {
  const char* name = "";
  int layer = -1;
  int rows = 1;
  int columns = 0;
  float deviation = 0.0f;  // of the initial values
  float mean = 0.0f;       // likewise
  Tensor data;
  Tensor gradient;       // null until a backward pass made it and after it was used
  Tensor first, second;  // AdamW's moments, null before the first step
  std::shared_ptr<Node> leaf;

  int64_t count() const { return int64_t{rows} * columns; }

  // The first gradient of a step is kept as it is, later ones are added to it.
  void receive(Queue& queue, Tensor next);
};

}  // namespace gpt
