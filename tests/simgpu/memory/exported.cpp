// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/memory/exported.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <utility>

#include "tests/simgpu/check/checker.h"
#include "tests/simgpu/memory/address_space.h"
#include "tests/simgpu/memory/machine.h"
#include "tests/simgpu/memory/window.h"

namespace simgpu::exported {

namespace {

constexpr uint64_t kMagic = 0x73696d6770753031;
constexpr uint64_t kPage = 4096;

struct Opened {
  Description description;
  int count = 0;
};

std::map<CUdeviceptr, Opened>& opened() {
  static auto* all = new std::map<CUdeviceptr, Opened>;
  return *all;
}

// The owner gives offsets in bytes; files are mapped by pages.
uint64_t page_of(uint64_t offset) {
  return offset / kPage * kPage;
}

}  // namespace

Description describe(const PhysicalMemory& physical, int device, uint64_t offset, size_t bytes) {
  Description made;
  made.magic = kMagic;
  made.process = getpid();
  made.fd = physical.fd();
  made.device = device;
  made.offset = offset;
  made.bytes = bytes;
  return made;
}

bool is_valid(const Description& description) {
  return description.magic == kMagic;
}

bool is_own(const Description& description) {
  return description.process == getpid();
}

PhysicalMemory* open_memory(const Description& description) {
  static auto* known = new std::map<std::pair<int, int>, PhysicalMemory*>;
  PhysicalMemory*& memory = (*known)[{description.process, description.fd}];
  if (memory != nullptr) return memory;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", description.process, description.fd);
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  struct stat status = {};
  if (fd < 0) return nullptr;
  if (fstat(fd, &status) != 0 || status.st_size == 0) {
    close(fd);
    return nullptr;
  }
  const int id = kMaxDevices + 2 + static_cast<int>(known->size());
  memory = new PhysicalMemory(id, fd, static_cast<size_t>(status.st_size));
  return memory;
}

CUresult open_ipc(const Description& description, int device, CUdeviceptr* address) {
  for (auto& [at, entry] : opened()) {
    if (entry.description.process != description.process ||
        entry.description.fd != description.fd || entry.description.offset != description.offset) {
      continue;
    }
    ++entry.count;
    address_space().find(at)->access[device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    *address = at;
    return CUDA_SUCCESS;
  }
  PhysicalMemory* memory = open_memory(description);
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t first = page_of(description.offset);
  const uint64_t end = page_of(description.offset + description.bytes + kPage - 1);
  const uint64_t begin = address_space().take_addresses(end - first, size_t{2} << 20);
  if (begin == RangeAllocator::kNone) return CUDA_ERROR_OUT_OF_MEMORY;
  map_file(begin + static_cast<uintptr_t>(window().delta), end - first, memory->fd(), first, true);
  Mapping mapping;
  mapping.begin = begin + (description.offset - first);
  mapping.bytes = description.bytes;
  mapping.span = description.bytes;
  mapping.kind = MemoryKind::kIpc;
  mapping.device = description.device;
  mapping.physical = memory;
  mapping.offset = description.offset;
  mapping.access[description.device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  mapping.access[device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  mapping.buffer_id = new_buffer_id();
  mapping.block_id = mapping.buffer_id;
  *address = mapping.begin;
  checker().forget(mapping.space(), mapping.offset, mapping.span, Content::kUnknown);
  address_space().insert(std::move(mapping));
  opened()[*address] = {description, 1};
  return CUDA_SUCCESS;
}

CUresult close_ipc(CUdeviceptr address) {
  const auto it = opened().find(address);
  if (it == opened().end()) return CUDA_ERROR_INVALID_VALUE;
  if (--it->second.count > 0) return CUDA_SUCCESS;
  const Description& description = it->second.description;
  const uint64_t first = page_of(description.offset);
  const uint64_t span = page_of(description.offset + description.bytes + kPage - 1) - first;
  const uintptr_t begin = address - (description.offset - first);
  Mapping* mapping = address_space().find(address);
  checker().removing(*mapping, "cuIpcCloseMemHandle");
  map_nothing(begin + static_cast<uintptr_t>(window().delta), span);
  address_space().erase(mapping);
  address_space().give_addresses(begin, span);
  opened().erase(it);
  return CUDA_SUCCESS;
}

int make_file(const Description& description) {
  const int fd = memfd_create("simgpu-shareable", MFD_CLOEXEC);
  if (fd < 0) return -1;
  if (pwrite(fd, &description, sizeof description, 0) == sizeof description) return fd;
  close(fd);
  return -1;
}

bool read_file(int fd, Description* description) {
  return pread(fd, description, sizeof *description, 0) == sizeof *description &&
         is_valid(*description);
}

}  // namespace simgpu::exported
