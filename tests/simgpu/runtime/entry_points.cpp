// SPDX-License-Identifier: Apache-2.0
// Driver entries handed to programs and libraries that want them without linking the driver.

#include <cuda_runtime_api.h>

#include "tests/simgpu/runtime/call.h"

namespace simgpu::runtime {

namespace {

template <Flavor flavor>
cudaError_t entry_by_version(const char* symbol, void** entry, unsigned version,
                             unsigned long long flags, cudaDriverEntryPointQueryResult* result) {
  return with_driver([&](const Driver& api) {
    if (symbol == nullptr || entry == nullptr) return cudaErrorInvalidValue;
    // "Default" means what the caller was compiled for.
    const cuuint64_t compiled_for = flavor == kPerThread
                                        ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                        : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
    const cuuint64_t wanted = flags == cudaEnableDefault ? compiled_for : flags;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    *entry = nullptr;
    const cudaError_t status =
        call(api.get_proc_address, symbol, entry, static_cast<int>(version), wanted, &found);
    if (result != nullptr) *result = static_cast<cudaDriverEntryPointQueryResult>(found);
    // Not finding a name is an answer, not an error, where the caller asked for it.
    if (result != nullptr && status == cudaErrorSymbolNotFound) return cudaSuccess;
    return status;
  });
}

template <Flavor flavor>
cudaError_t entry_point(const char* symbol, void** entry, unsigned long long flags,
                        cudaDriverEntryPointQueryResult* result) {
  return entry_by_version<flavor>(symbol, entry, CUDART_VERSION, flags, result);
}

}  // namespace

RUNTIME_PAIR(cudaGetDriverEntryPointByVersion, _ptsz,
             (const char* symbol, void** entry, unsigned version, unsigned long long flags,
              cudaDriverEntryPointQueryResult* result),
             entry_by_version, (symbol, entry, version, flags, result))

RUNTIME_PAIR(cudaGetDriverEntryPoint, _ptsz,
             (const char* symbol, void** entry, unsigned long long flags,
              cudaDriverEntryPointQueryResult* result),
             entry_point, (symbol, entry, flags, result))

}  // namespace simgpu::runtime
