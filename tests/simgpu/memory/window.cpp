// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/memory/window.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/simgpu/driver/say.h"

namespace simgpu {
namespace {

void* raw_mmap(uintptr_t address, size_t bytes, int protection, int flags, int fd,
               uint64_t offset) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, fd, offset));
}

// One reservation holds window and view: [base, base + size) and [base + size, base + 2 size).
uintptr_t reserve(uintptr_t hint, size_t bytes) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* got = raw_mmap(hint, bytes, PROT_NONE, flags | (hint ? MAP_FIXED_NOREPLACE : 0), -1, 0);
  return got == MAP_FAILED ? 0 : reinterpret_cast<uintptr_t>(got);
}

// The system allows a process so many mappings (vm.max_map_count). Some are held back while the
// window grows, so that once it has taken all others the heap and the stacks of threads still find
// some: memory runs out for the device, not for the program.
class Spare {
 public:
  bool hold() {
    if (memory_ != nullptr) return true;
    void* memory =
        raw_mmap(0, kPages * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    memory_ = memory;
    for (size_t page = 0; page < kPages; page += 2) {  // every second one: none joins its neighbour
      if (mprotect(static_cast<char*>(memory) + page * kPage, kPage, PROT_READ) == 0) continue;
      give_up();
      return false;
    }
    return true;
  }
  void give_up() {
    if (memory_ != nullptr) munmap(memory_, kPages * kPage);
    memory_ = nullptr;
  }

 private:
  static constexpr size_t kPage = 4096;
  static constexpr size_t kPages = 512;
  void* memory_ = nullptr;
};

Spare spare;

Window make_window() {
  constexpr size_t kTiB = size_t{1} << 40;
  // A base with a large low half: device addresses do not look like small integers.
  constexpr uintptr_t kHint = 0x2b3d9a400000;
  constexpr uintptr_t kAlignment = 2 << 20;
  Window result;
  const bool thread_sanitizer = dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr;
  uintptr_t base = thread_sanitizer ? 0 : reserve(kHint, 16 * kTiB);
  size_t size = 8 * kTiB;
  for (size_t smaller = kTiB / 8; base == 0 && smaller >= kTiB / 64; smaller /= 2) {
    size = smaller;
    base =
        reserve(0, 2 * size + kAlignment);  // near the libraries, where every sanitizer allows it
    base = (base + kAlignment - 1) & ~(kAlignment - 1);
  }
  if (base == 0) {
    say("no address space for the device window");
    std::abort();
  }
  result.begin = base;
  result.end = base + size;
  result.delta = static_cast<ptrdiff_t>(size);
  return result;
}

}  // namespace

const Window& window() {
  static const Window instance = make_window();
  return instance;
}

bool map_file(uintptr_t address, size_t bytes, int fd, uint64_t offset, bool writable) {
  const int protection = PROT_READ | (writable ? PROT_WRITE : 0);
  if (!spare.hold()) return false;
  if (raw_mmap(address, bytes, protection, MAP_SHARED | MAP_FIXED, fd, offset) != MAP_FAILED)
    return true;
  spare.give_up();
  return false;
}

bool map_nothing(uintptr_t address, size_t bytes) {
  const auto map = [=] {
    return raw_mmap(address, bytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
  };
  if (map()) return true;
  spare.give_up();  // what stands in the middle of a mapping leaves two
  return map();
}

void populate(uintptr_t view_address, size_t bytes) {
  constexpr uintptr_t kPage = 4096;
  const uintptr_t begin = view_address & ~(kPage - 1);
  const uintptr_t end = (view_address + bytes + kPage - 1) & ~(kPage - 1);
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  madvise(reinterpret_cast<void*>(begin), end - begin, kPopulateWrite);
}

}  // namespace simgpu
