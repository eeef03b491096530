// SPDX-License-Identifier: Apache-2.0
// Linked to libcuda.so.1 directly. Compiled twice: with the legacy default stream and with
// per-thread ones.

#include "tests/clients/entries.h"

namespace clients {

Cuda take_road(const std::string&) {
  Cuda cuda;
#define ENTRY(name) cuda.name = &::name;
  CLIENT_ENTRIES(ENTRY)
#undef ENTRY
  cuda.other = [](const char* base) -> void* {
    void* found = nullptr;
    return cuGetProcAddress(base, &found, 12080, 0, nullptr) == CUDA_SUCCESS ? found : nullptr;
  };
  return cuda;
}

}  // namespace clients
