// SPDX-License-Identifier: Apache-2.0
#include "interpose/naming/scan.h"

#include "interpose/driver/cuda_api.h"

namespace offload {

bool find_argument_block(void* const* extra, const void** block, size_t* bytes) {
  *block = nullptr;
  *bytes = 0;
  constexpr int kMostPairs = 8;
  for (int pair = 0; pair < kMostPairs; ++pair) {
    void* const key = extra[2 * pair];
    if (key == CU_LAUNCH_PARAM_END) return *block != nullptr;
    if (key == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      *block = extra[2 * pair + 1];
    } else if (key == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      *bytes = *static_cast<const size_t*>(extra[2 * pair + 1]);
    } else {
      return false;
    }
  }
  return false;
}

}  // namespace offload
