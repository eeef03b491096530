// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory that can be put back as it was: whatever is allocated while it is open, by new or from the
// library's own heap, lies in one range at a fixed address. One thread.

#include <cstddef>
#include <vector>

namespace offload::model {

class Arena {
 public:
  static void open();
  static void close();
  // All of it is free again.
  static void reset();
  static bool holds(const void* memory);
  static char* base();
  static size_t used_bytes();  // from the base

  struct Open {
    Open() { open(); }
    ~Open() { close(); }
  };
};

}  // namespace offload::model
