// SPDX-License-Identifier: Apache-2.0
#include "interpose/engine/clauses.h"

#ifdef OFFLOAD_DROPPABLE_CLAUSES
#include <array>
#include <cstddef>

namespace offload {

namespace {
std::array<bool, static_cast<std::size_t>(Clause::kCount)> dropped{};
}  // namespace

bool holds(Clause clause) {
  return !dropped[static_cast<std::size_t>(clause)];
}
void drop(Clause clause) {
  dropped[static_cast<std::size_t>(clause)] = true;
}
void restore_clauses() {
  dropped.fill(false);
}

}  // namespace offload
#endif
