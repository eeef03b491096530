// SPDX-License-Identifier: Apache-2.0
#pragma once
// The device window: the addresses that the program gets for device memory, and the view, where the
// executor sees that memory. Both are reserved without access, so host code that touches an address
// of the window faults at once. The only place that calls mmap for them; raw system calls, so that
// nothing that is preloaded or instrumented sees them.

#include <cstddef>
#include <cstdint>

namespace simgpu {

struct Window {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  ptrdiff_t delta = 0;  // view address - program's address

  bool contains(uintptr_t address) const { return address >= begin && address < end; }
  bool view_contains(uintptr_t address) const {
    return contains(address - static_cast<uintptr_t>(delta));
  }
};

// Reserved at the first call; a smaller one where address space is scarce (sanitizers). Aborts with
// a message if there is none.
const Window& window();

// Shows `bytes` of a memory file at `address` (in the window or in the view), or takes them away
// again. False: the system refused, for the process has as many mappings as it allows.
// Driver's lock.
bool map_file(uintptr_t address, size_t bytes, int fd, uint64_t offset, bool writable);
bool map_nothing(uintptr_t address, size_t bytes);

// Looks up the pages of a view range in one go, for a fault per page costs more than a kernel's
// work on it. Only a hint.
void populate(uintptr_t view_address, size_t bytes);

}  // namespace simgpu
