// SPDX-License-Identifier: Apache-2.0
#include "tests/model/arena.h"

#include <sys/mman.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "interpose/life/heap.h"
#include "tests/unit/engine/arena_heap.h"

namespace offload::model {
namespace {

constexpr size_t kBytes = size_t{64} << 20;
constexpr size_t kUnit = 16;
constexpr size_t kSmall = 128;  // classes of one unit each, then powers of two
constexpr size_t kClasses = kSmall + 32;

// Lies at the base, so that it is put back with the rest.
struct Head {
  char* bump;
  void* free[kClasses];
};
// Before each block.
struct alignas(kUnit) Tag {
  uint32_t size_class;
  uint32_t shift;  // from the block's own start
};

bool is_open = false;

char* map_arena() {
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return static_cast<char*>(memory);
}
char* const memory_base = map_arena();
Head& head() {
  return *reinterpret_cast<Head*>(memory_base);
}

size_t class_of(size_t bytes) {
  const size_t units = (bytes + kUnit - 1) / kUnit;
  return units < kSmall ? units : kSmall + static_cast<size_t>(std::bit_width(units - 1));
}
size_t class_bytes(size_t size_class) {
  return size_class < kSmall ? size_class * kUnit : kUnit << (size_class - kSmall);
}

void* take(size_t bytes, size_t alignment) {
  const size_t extra = alignment > kUnit ? alignment : 0;
  const size_t size_class = class_of(bytes + extra + sizeof(Tag));
  char* block = static_cast<char*>(head().free[size_class]);
  if (block != nullptr) {
    std::memcpy(&head().free[size_class], block, sizeof(void*));
  } else {
    block = head().bump;
    head().bump += class_bytes(size_class);
    if (head().bump > memory_base + kBytes) {
      std::fputs("the arena is too small\n", stderr);
      std::abort();
    }
  }
  auto at = reinterpret_cast<uintptr_t>(block) + sizeof(Tag);
  if (extra != 0) at = (at + alignment - 1) / alignment * alignment;
  Tag* tag = reinterpret_cast<Tag*>(at) - 1;
  tag->size_class = static_cast<uint32_t>(size_class);
  tag->shift = static_cast<uint32_t>(at - reinterpret_cast<uintptr_t>(block));
  return reinterpret_cast<void*>(at);
}

void give(void* memory) {
  const Tag tag = *(static_cast<Tag*>(memory) - 1);
  char* block = static_cast<char*>(memory) - tag.shift;
  std::memcpy(block, &head().free[tag.size_class], sizeof(void*));
  head().free[tag.size_class] = block;
}

void* allocate(size_t bytes, size_t alignment) {
  if (is_open) return take(bytes, alignment);
  void* memory = alignment > kUnit ? std::aligned_alloc(
                                         alignment, (bytes + alignment - 1) / alignment * alignment)
                                   : std::malloc(bytes != 0 ? bytes : 1);
  if (memory == nullptr) std::abort();
  return memory;
}

void release(void* memory) {
  if (memory == nullptr) return;
  if (!Arena::holds(memory)) return std::free(memory);
  give(memory);
}

}  // namespace

void Arena::open() {
  is_open = true;
}
void Arena::close() {
  is_open = false;
}
void Arena::reset() {
  std::memset(&head(), 0, sizeof(Head));
  head().bump = memory_base + (sizeof(Head) + 63) / 64 * 64;
}
bool Arena::holds(const void* memory) {
  return memory >= memory_base && memory < memory_base + kBytes;
}
char* Arena::base() {
  return memory_base;
}
size_t Arena::used_bytes() {
  return static_cast<size_t>(head().bump - memory_base);
}

// The tests' heap of the library is this one, and nothing has to be given back.
void free_own_heap() {}
size_t own_heap_blocks() {
  return 0;
}

}  // namespace offload::model

namespace offload {
void* own_allocate(size_t bytes) {
  return model::allocate(bytes, 64);
}
void own_free(void* memory) {
  model::release(memory);
}
}  // namespace offload

void* operator new(size_t bytes) {
  return offload::model::allocate(bytes, 16);
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  return offload::model::allocate(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  offload::model::release(memory);
}
void operator delete(void* memory, size_t) noexcept {
  offload::model::release(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  offload::model::release(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  offload::model::release(memory);
}

// The window's tables, too. Linked with --wrap.
extern "C" void* __real_mmap(void* at, size_t bytes, int protection, int flags, int file,
                             off_t offset);
extern "C" int __real_munmap(void* at, size_t bytes);
extern "C" void* __wrap_mmap(void* at, size_t bytes, int protection, int flags, int file,
                             off_t offset) {
  if (!offload::model::is_open) return __real_mmap(at, bytes, protection, flags, file, offset);
  void* memory = offload::model::take(bytes, 64);
  std::memset(memory, 0, bytes);
  return memory;
}
extern "C" int __wrap_munmap(void* at, size_t bytes) {
  if (offload::model::Arena::holds(at)) return 0;
  return __real_munmap(at, bytes);
}
