// SPDX-License-Identifier: Apache-2.0
#include "tests/workloads/loader.h"

namespace gpt {

Loader::Loader(const Text& text, uint64_t seed, Shape largest)
    : text_(text), seed_(seed), slots_{Slot(largest.rows()), Slot(largest.rows())} {}

Batch Loader::train(Queue& queue, Shape shape) {
  return load(queue, shape, false, trained_++);
}

Batch Loader::evaluate(Queue& queue, Shape shape, uint64_t index) {
  return load(queue, shape, true, index);
}

Batch Loader::load(Queue& queue, Shape shape, bool evaluation, uint64_t index) {
  Slot& slot = slots_[loads_++ % slots_.size()];
  if (slot.used) slot.copied.synchronize();
  text_.fill(slot.tokens.data(), slot.targets.data(), shape.batch, shape.sequence, evaluation,
             seed_, index);
  const int64_t bytes = shape.rows() * int64_t{sizeof(int)};
  Batch batch{queue.allocate(bytes, Role::kInput, "tokens", -1),
              queue.allocate(bytes, Role::kInput, "targets", -1), shape};
  queue.copy_in(batch.tokens, slot.tokens.data(), bytes);
  queue.copy_in(batch.targets, slot.targets.data(), bytes);
  queue.record(slot.copied);
  slot.used = true;
  return batch;
}

}  // namespace gpt
