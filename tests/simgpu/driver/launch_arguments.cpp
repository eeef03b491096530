// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/driver/launch_arguments.h"

#include <algorithm>
#include <cstring>

namespace simgpu {

namespace {

constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kMaxGridYZ = 65535;
constexpr unsigned kMaxGridX = 0x7fffffff;
constexpr unsigned kMaxSharedBytes = 166912;

}  // namespace

bool launch_shape_is_valid(const SimgpuLaunch& launch) {
  const unsigned* grid = launch.grid;
  const unsigned* block = launch.block;
  for (int i = 0; i < 3; ++i) {
    if (grid[i] == 0 || block[i] == 0) return false;
  }
  if (grid[0] > kMaxGridX || grid[1] > kMaxGridYZ || grid[2] > kMaxGridYZ) return false;
  if (block[0] > kMaxThreads || block[1] > kMaxThreads || block[2] > 64) return false;
  return uint64_t{block[0]} * block[1] * block[2] <= kMaxThreads &&
         launch.shared_bytes <= kMaxSharedBytes;
}

CUresult take_launch_arguments(const Kernel& kernel, void** parameters, void** extra,
                               std::vector<std::byte>* buffer) {
  size_t needed = 0;
  for (const auto& parameter : kernel.parameters()) {
    needed = std::max(needed, parameter.offset + parameter.size);
  }
  buffer->resize(needed);
  if (parameters != nullptr) {
    if (extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < kernel.parameters().size(); ++i) {
      const auto& parameter = kernel.parameters()[i];
      if (parameters[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      std::memcpy(buffer->data() + parameter.offset, parameters[i], parameter.size);
    }
    return CUDA_SUCCESS;
  }
  if (extra == nullptr) return needed == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  const void* data = nullptr;
  const size_t* size = nullptr;
  for (void** entry = extra; *entry != CU_LAUNCH_PARAM_END; entry += 2) {
    if (entry[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      data = entry[1];
    } else if (entry[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size = static_cast<const size_t*>(entry[1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  // Tail padding may be left out.
  if (data == nullptr || size == nullptr || *size + 16 < needed) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(buffer->data(), data, std::min(*size, needed));
  return CUDA_SUCCESS;
}

}  // namespace simgpu
