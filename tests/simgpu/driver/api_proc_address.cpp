// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress: names, versions and per-thread variants, from the same table as the exports.
#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/driver/proc_address.h"

using simgpu::find_entry;
using simgpu::options;
using simgpu::ProcAddress;

// Since 12.0: with a place for the status, a miss is a success with a null address; without one it
// is an error.
SIMGPU_API cuGetProcAddress_v2(const char* name, void** address, int version, cuuint64_t flags,
                               CUdriverProcAddressQueryResult* status) {
  const simgpu::ApiName api_name(__func__);
  constexpr cuuint64_t kEither =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (name == nullptr || address == nullptr || flags >= kEither) return CUDA_ERROR_INVALID_VALUE;
  if (version > options().driver_version) return CUDA_ERROR_INVALID_VALUE;
  const ProcAddress found =
      find_entry(name, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  *address = found.address;
  if (status != nullptr) *status = static_cast<CUdriverProcAddressQueryResult>(found.status);
  return found.address != nullptr || status != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

SIMGPU_API cuGetProcAddress(const char* name, void** address, int version, cuuint64_t flags) {
  const simgpu::ApiName api_name(__func__);
  return cuGetProcAddress_v2(name, address, version, flags, nullptr);
}
