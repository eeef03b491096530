// SPDX-License-Identifier: Apache-2.0
// libcudnn.so.9: its version, which PyTorch compares with what it was built for. Nothing else.

#include <cstddef>

#define SIMGPU_LIBRARY_API extern "C" __attribute__((visibility("default")))

SIMGPU_LIBRARY_API size_t cudnnGetVersion() {
  return 91900;
}

SIMGPU_LIBRARY_API size_t cudnnGetCudartVersion() {
  return 13000;
}

// libraryPropertyType: major, minor, patch level.
SIMGPU_LIBRARY_API int cudnnGetProperty(int which, int* value) {
  constexpr int kBadParameter = 2000;
  constexpr int kVersion[] = {9, 19, 0};
  if (which < 0 || which > 2 || value == nullptr) return kBadParameter;
  *value = kVersion[which];
  return 0;
}
