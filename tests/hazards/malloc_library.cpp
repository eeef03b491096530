// SPDX-License-Identifier: Apache-2.0
// Another allocator that is preloaded. It marks every block, so that memory which it has not given
// out ends the process when it is freed; and at the end it says how often liboffload, which has a
// heap of its own, called it.

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>

extern "C" void* __libc_malloc(size_t bytes);  // NOLINT(bugprone-reserved-identifier)
extern "C" void __libc_free(void* memory);     // NOLINT(bugprone-reserved-identifier)

namespace {

constexpr uint64_t kMark = 0x6d61726b65642121;

struct Head {
  void* base;
  size_t bytes;
  uint64_t mark;
  uint64_t unused;
};

constinit std::atomic<uint64_t> blocks{0};
constinit std::atomic<uint64_t> calls_by_liboffload{0};
constinit std::atomic<uintptr_t> first{0};
constinit std::atomic<uintptr_t> last{0};

int find_liboffload(dl_phdr_info* info, size_t, void*) {
  if (std::strstr(info->dlpi_name, "liboffload") == nullptr) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    first = info->dlpi_addr + header.p_vaddr;
    last = info->dlpi_addr + header.p_vaddr + header.p_memsz;
  }
  return 1;
}

__attribute__((constructor)) void begin() {
  dl_iterate_phdr(&find_liboffload, nullptr);
}

__attribute__((destructor)) void tell() {
  char line[80];
  const int length =
      std::snprintf(line, sizeof line, "marked: %s, calls by liboffload: %d\n",
                    blocks > 100 ? "yes" : "no", static_cast<int>(calls_by_liboffload));
  if (write(STDOUT_FILENO, line, static_cast<size_t>(length)) < 0) _exit(70);
}

void* give(size_t bytes, size_t alignment, const void* caller) {
  const auto from = reinterpret_cast<uintptr_t>(caller);
  if (from >= first && from < last) ++calls_by_liboffload;
  if (bytes > SIZE_MAX / 2) {
    errno = ENOMEM;
    return nullptr;
  }
  void* base = __libc_malloc(bytes + sizeof(Head) + alignment);
  if (base == nullptr) return nullptr;
  ++blocks;
  uintptr_t at = reinterpret_cast<uintptr_t>(base) + sizeof(Head);
  at = (at + alignment - 1) / alignment * alignment;
  reinterpret_cast<Head*>(at)[-1] = {base, bytes, kMark, 0};
  return reinterpret_cast<void*>(at);
}

Head& head_of(void* memory) {
  Head& head = static_cast<Head*>(memory)[-1];
  if (head.mark == kMark) return head;
  constexpr char kLine[] = "a block that was not marked\n";
  if (write(STDERR_FILENO, kLine, sizeof kLine - 1) < 0) _exit(71);
  abort();
}

void take_back(void* memory) {
  if (memory == nullptr) return;
  Head& head = head_of(memory);
  void* base = head.base;
  head.mark = 0;
  __libc_free(base);
}

}  // namespace

#define CALLER __builtin_return_address(0)
#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED void* malloc(size_t bytes) noexcept {
  return give(bytes, 16, CALLER);
}
EXPORTED void free(void* memory) noexcept {
  take_back(memory);
}
EXPORTED void* calloc(size_t count, size_t bytes) noexcept {
  size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) return nullptr;
  void* memory = give(all, 16, CALLER);
  return memory == nullptr ? nullptr : std::memset(memory, 0, all);
}
EXPORTED void* realloc(void* memory, size_t bytes) noexcept {
  void* fresh = give(bytes, 16, CALLER);
  if (fresh == nullptr || memory == nullptr) return fresh;
  const size_t before = head_of(memory).bytes;
  std::memcpy(fresh, memory, before < bytes ? before : bytes);
  take_back(memory);
  return fresh;
}
EXPORTED void* memalign(size_t alignment, size_t bytes) noexcept {
  return give(bytes, alignment < 16 ? 16 : alignment, CALLER);
}
EXPORTED void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return give(bytes, alignment < 16 ? 16 : alignment, CALLER);
}
EXPORTED int posix_memalign(void** out, size_t alignment, size_t bytes) noexcept {
  *out = give(bytes, alignment < 16 ? 16 : alignment, CALLER);
  return *out == nullptr ? ENOMEM : 0;
}
EXPORTED size_t malloc_usable_size(void* memory) noexcept {
  return memory == nullptr ? 0 : head_of(memory).bytes;
}
