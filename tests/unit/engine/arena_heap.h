// SPDX-License-Identifier: Apache-2.0
#pragma once
// The engine's heap (interpose/life/heap.h) as the tests have it: what one engine leaves behind
// (the library never destroys one) is given back between runs, so that millions of runs fit.

#include <cstddef>

namespace offload::model {

// Frees everything that was allocated and not freed. No engine may be in use.
void free_own_heap();
size_t own_heap_blocks();

}  // namespace offload::model
