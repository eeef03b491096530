// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engine/arena_heap.h"

#include <cstdlib>
#include <mutex>

#include "interpose/life/heap.h"

namespace offload {
namespace {

struct alignas(64) Header {
  Header* next;
  Header* previous;
};

std::mutex mutex;
Header ends = {&ends, &ends};
size_t blocks = 0;

}  // namespace

void* own_allocate(size_t bytes) {
  auto* header = static_cast<Header*>(
      std::aligned_alloc(alignof(Header), sizeof(Header) + (bytes + 63) / 64 * 64));
  if (header == nullptr) std::abort();
  const std::lock_guard<std::mutex> lock(mutex);
  header->next = ends.next;
  header->previous = &ends;
  ends.next->previous = header;
  ends.next = header;
  ++blocks;
  return header + 1;
}

void own_free(void* memory) {
  if (memory == nullptr) return;
  Header* header = static_cast<Header*>(memory) - 1;
  const std::lock_guard<std::mutex> lock(mutex);
  header->next->previous = header->previous;
  header->previous->next = header->next;
  --blocks;
  std::free(header);
}

namespace model {

void free_own_heap() {
  const std::lock_guard<std::mutex> lock(mutex);
  for (Header* header = ends.next; header != &ends;) {
    Header* next = header->next;
    std::free(header);
    header = next;
  }
  ends = {&ends, &ends};
  blocks = 0;
}

size_t own_heap_blocks() {
  const std::lock_guard<std::mutex> lock(mutex);
  return blocks;
}

}  // namespace model
}  // namespace offload
