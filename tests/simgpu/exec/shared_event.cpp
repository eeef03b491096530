// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/shared_event.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

namespace simgpu {

namespace {

constexpr size_t kBytes = 4096;

}  // namespace

std::shared_ptr<SharedEvent> SharedEvent::map(int fd) {
  if (fd < 0) return nullptr;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    close(fd);
    return nullptr;
  }
  return std::shared_ptr<SharedEvent>(
      new SharedEvent(fd, static_cast<std::atomic<uint64_t>*>(memory)));
}

std::shared_ptr<SharedEvent> SharedEvent::create() {
  const int fd = memfd_create("simgpu-event", MFD_CLOEXEC);
  if (fd >= 0 && ftruncate(fd, kBytes) != 0) {
    close(fd);
    return nullptr;
  }
  return map(fd);
}

std::shared_ptr<SharedEvent> SharedEvent::open(int process, int fd) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", process, fd);
  return map(::open(path, O_RDWR | O_CLOEXEC));
}

SharedEvent::~SharedEvent() {
  munmap(words_, kBytes);
  close(fd_);
}

void SharedEvent::finish(uint64_t number) {
  uint64_t seen = words_[1].load();
  while (seen < number && !words_[1].compare_exchange_weak(seen, number)) {
  }
}

}  // namespace simgpu
