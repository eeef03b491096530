// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/memory/physical.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "tests/simgpu/driver/say.h"

namespace simgpu {

namespace {

constexpr size_t kKeptPages = size_t{2} << 30;

size_t file_size(size_t capacity) {
  return 4 * std::max(capacity, size_t{64} << 20);
}

}  // namespace

PhysicalMemory::PhysicalMemory(int id, const char* name, size_t capacity, size_t granularity)
    : id_(id),
      fd_(memfd_create(name, MFD_CLOEXEC)),
      capacity_(capacity),
      granularity_(granularity),
      file_bytes_(file_size(capacity)),
      base_(nullptr),
      offsets_(0, file_bytes_) {
  if (fd_ >= 0 && ftruncate(fd_, static_cast<off_t>(file_bytes_)) != 0) close(fd_), fd_ = -1;
  map_all(name);
}

PhysicalMemory::PhysicalMemory(int id, int fd, size_t file_bytes)
    : id_(id),
      fd_(fd),
      capacity_(0),
      granularity_(4096),
      file_bytes_(file_bytes),
      base_(nullptr),
      offsets_(0, 0) {
  map_all("another process");
}

void PhysicalMemory::map_all(const char* name) {
  void* base = MAP_FAILED;
  if (fd_ >= 0) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    base = reinterpret_cast<void*>(syscall(SYS_mmap, nullptr, file_bytes_, PROT_READ | PROT_WRITE,
                                           MAP_SHARED | MAP_NORESERVE, fd_, 0));
  }
  if (base == MAP_FAILED) {
    say("no memory file of %zu bytes for %s", file_bytes_, name);
    std::abort();
  }
  madvise(base, file_bytes_, MADV_DONTFORK);
  base_ = static_cast<std::byte*>(base);
}

uint64_t PhysicalMemory::allocate(size_t bytes) {
  if (bytes == 0 || bytes > capacity_ - used_) return kNone;
  const uint64_t offset = offsets_.allocate(bytes, granularity_);
  if (offset == kNone) return kNone;
  used_ += bytes;
  dirty_ -= std::min(dirty_, bytes);
  peak_ = std::max(peak_, used_);
  high_water_ = std::max(high_water_, offset + bytes);
  return offset;
}

bool PhysicalMemory::take_back(size_t bytes) {
  if (bytes > capacity_ - used_) return false;
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  return true;
}

void PhysicalMemory::free(uint64_t offset, size_t bytes) {
  if (foreign()) return;
  set_aside(bytes);
  free_aside(offset, bytes);
}

void PhysicalMemory::free_aside(uint64_t offset, size_t bytes) {
  offsets_.release(offset, bytes);
  dirty_ += bytes;
  // Taking pages away and faulting them in again costs a loop that allocates and frees more than
  // its kernels.
  if (dirty_ > kKeptPages) give_back_pages();
}

void PhysicalMemory::give_back_pages() {
  dirty_ = 0;
  for (const auto& [begin, end] : offsets_.free_ranges()) {
    const uint64_t last = std::min(end, high_water_);
    if (begin >= last) continue;
    fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
              static_cast<off_t>(last - begin));
  }
}

}  // namespace simgpu
