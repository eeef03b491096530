// SPDX-License-Identifier: Apache-2.0
#pragma once
// Entries by name, version and kind of default stream.

namespace simgpu {

enum class ProcStatus {
  kFound = 0,
  kNoSuchName = 1,
  kVersionTooLow = 2
};  // as cuda.h numbers them

struct ProcAddress {
  ProcStatus status = ProcStatus::kNoSuchName;
  void* address = nullptr;
};

// The newest variant that is no newer than `version`; the per-thread one if asked for and there is
// one.
ProcAddress find_entry(const char* name, int version, bool per_thread);

}  // namespace simgpu
