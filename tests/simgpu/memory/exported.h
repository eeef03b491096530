// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory that crosses the border of the process: what a handle says, and the memories of other
// processes. The owner's memory file is reached through /proc, so the owner must be alive when a
// handle is opened. Driver's lock.

#include <cstddef>
#include <cstdint>

#include "tests/simgpu/memory/mapping.h"

namespace simgpu::exported {

// Fits in the 64 bytes of a CUipcMemHandle.
struct Description {
  uint64_t magic = 0;
  int32_t process = 0;
  int32_t fd = -1;     // of the memory file, in the owner
  int32_t device = 0;  // -1: host memory
  uint32_t types = 0;  // the handle types that were asked for
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t object = 0;    // in the owner: where the handle is
  uint64_t block_id = 0;  // and which it is, for its place may be used again
};

Description describe(const PhysicalMemory& physical, int device, uint64_t offset, size_t bytes);
bool is_valid(const Description& description);
bool is_own(const Description& description);
// Null: the owner is gone, or not ours to look into.
PhysicalMemory* open_memory(const Description& description);

// cuIpcOpenMemHandle and cuIpcCloseMemHandle. One address per allocation, counted.
CUresult open_ipc(const Description& description, int device, CUdeviceptr* address);
CUresult close_ipc(CUdeviceptr address);

// A file that carries the description (a shareable handle). -1: the system refused.
int make_file(const Description& description);
bool read_file(int fd, Description* description);

}  // namespace simgpu::exported
