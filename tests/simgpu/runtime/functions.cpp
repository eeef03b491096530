// SPDX-License-Identifier: Apache-2.0
// Kernels as objects: their attributes, names, parameters, occupancy; libraries loaded by hand.

#include <cuda_runtime_api.h>

#include <type_traits>

#include "tests/simgpu/runtime/call.h"
#include "tests/simgpu/runtime/devices.h"
#include "tests/simgpu/runtime/registry.h"

namespace simgpu::runtime {

namespace {

template <class Body>
cudaError_t with_kernel(const void* function, Body body) {
  return with_context([&](const Driver& api) {
    CUkernel kernel = nullptr;
    const cudaError_t status = find_kernel(function, &kernel);
    return status == cudaSuccess ? body(api, kernel) : status;
  });
}

CUfunction as_function(CUkernel kernel) {
  return reinterpret_cast<CUfunction>(kernel);
}

CUlaunchConfig shape_of(const cudaLaunchConfig_t& from) {
  CUlaunchConfig to{};
  to.gridDimX = from.gridDim.x;
  to.gridDimY = from.gridDim.y;
  to.gridDimZ = from.gridDim.z;
  to.blockDimX = from.blockDim.x;
  to.blockDimY = from.blockDim.y;
  to.blockDimZ = from.blockDim.z;
  to.sharedMemBytes = static_cast<unsigned>(from.dynamicSmemBytes);
  to.hStream = from.stream;
  to.attrs = reinterpret_cast<CUlaunchAttribute*>(from.attrs);
  to.numAttrs = from.numAttrs;
  return to;
}

}  // namespace

RUNTIME_WIPED(cudaFuncGetAttributes, (cudaFuncAttributes * attributes, const void* function),
              (attributes, function)) {
  return with_kernel(function, [&](const Driver& api, CUkernel kernel) {
    if (attributes == nullptr) return cudaErrorInvalidValue;
    *attributes = {};
    int device = 0;
    cudaError_t status = current_device(&device);
    const auto read = [&](auto* member, CUfunction_attribute attribute) {
      int value = 0;
      CUdevice handle = device;
      if (status == cudaSuccess) {
        status = call(api.cuKernelGetAttribute, &value, attribute, kernel, handle);
      }
      *member = static_cast<std::remove_pointer_t<decltype(member)>>(value);
    };
    read(&attributes->maxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    read(&attributes->sharedSizeBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    read(&attributes->constSizeBytes, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
    read(&attributes->localSizeBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    read(&attributes->numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS);
    read(&attributes->ptxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION);
    read(&attributes->binaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    read(&attributes->cacheModeCA, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
    read(&attributes->maxDynamicSharedSizeBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    read(&attributes->preferredShmemCarveout, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    return status;
  });
}

RUNTIME_WIPED(cudaFuncSetAttribute, (const void* function, cudaFuncAttribute attribute, int value),
              (function, attribute, value)) {
  return with_kernel(function, [&](const Driver& api, CUkernel kernel) {
    int device = 0;
    const cudaError_t status = current_device(&device);
    CUdevice handle = device;
    if (status != cudaSuccess) return status;
    return call(api.cuKernelSetAttribute, static_cast<CUfunction_attribute>(attribute), value,
                kernel, handle);
  });
}

RUNTIME_API cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute,
                                            int value, int device) {
  return with_context([&](const Driver& api) {
    CUdevice handle = device;
    return call(api.cuKernelSetAttribute, static_cast<CUfunction_attribute>(attribute), value,
                kernel, handle);
  });
}

// Preferences change nothing here, but the function must exist.
RUNTIME_API cudaFuncSetCacheConfig(const void* function, cudaFuncCache) {
  return with_kernel(function, [](const Driver&, CUkernel) { return cudaSuccess; });
}

RUNTIME_API cudaFuncGetName(const char** name, const void* function) {
  return with_kernel(function, [&](const Driver& api, CUkernel kernel) {
    return call(api.cuKernelGetName, name, kernel);
  });
}

RUNTIME_API cudaFuncGetParamInfo(const void* function, size_t index, size_t* offset, size_t* size) {
  return with_kernel(function, [&](const Driver& api, CUkernel kernel) {
    return call(api.cuKernelGetParamInfo, kernel, index, offset, size);
  });
}

RUNTIME_API cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  return with_context([&](const Driver&) { return find_kernel(function, kernel); });
}

RUNTIME_API cudaGetFuncBySymbol(cudaFunction_t* handle, const void* function) {
  return with_kernel(function, [&](const Driver& api, CUkernel kernel) {
    return call(api.cuKernelGetFunction, handle, kernel);
  });
}

RUNTIME_API cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* function, int block_size, size_t shared_bytes, unsigned flags) {
  return with_kernel(function, [&](const Driver& api, CUkernel kernel) {
    return call(api.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, blocks,
                as_function(kernel), block_size, shared_bytes, flags);
  });
}

RUNTIME_API cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int block_size, size_t shared_bytes) {
  return with_kernel(function, [&](const Driver& api, CUkernel kernel) {
    return call(api.cuOccupancyMaxActiveBlocksPerMultiprocessor, blocks, as_function(kernel),
                block_size, shared_bytes);
  });
}

RUNTIME_API cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function,
                                                      int blocks, int block_size) {
  return with_kernel(function, [&](const Driver& api, CUkernel kernel) {
    return call(api.cuOccupancyAvailableDynamicSMemPerBlock, bytes, as_function(kernel), blocks,
                block_size);
  });
}

RUNTIME_API cudaOccupancyMaxPotentialClusterSize(int* size, const void* function,
                                                 const cudaLaunchConfig_t* configuration) {
  return with_kernel(function, [&](const Driver& api, CUkernel kernel) {
    if (configuration == nullptr) return cudaErrorInvalidValue;
    const CUlaunchConfig shape = shape_of(*configuration);
    return call(api.cuOccupancyMaxPotentialClusterSize, size, as_function(kernel), &shape);
  });
}

RUNTIME_API cudaOccupancyMaxActiveClusters(int* clusters, const void* function,
                                           const cudaLaunchConfig_t* configuration) {
  return with_kernel(function, [&](const Driver& api, CUkernel kernel) {
    if (configuration == nullptr) return cudaErrorInvalidValue;
    const CUlaunchConfig shape = shape_of(*configuration);
    return call(api.cuOccupancyMaxActiveClusters, clusters, as_function(kernel), &shape);
  });
}

RUNTIME_API cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* jit,
                                void** jit_values, unsigned jit_count, cudaLibraryOption* options,
                                void** values, unsigned count) {
  return with_context([&](const Driver& api) {
    return call(api.cuLibraryLoadData, library, code, reinterpret_cast<CUjit_option*>(jit),
                jit_values, jit_count, reinterpret_cast<CUlibraryOption*>(options), values, count);
  });
}

RUNTIME_API cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path, cudaJitOption* jit,
                                    void** jit_values, unsigned jit_count,
                                    cudaLibraryOption* options, void** values, unsigned count) {
  return with_context([&](const Driver& api) {
    return call(api.cuLibraryLoadFromFile, library, path, reinterpret_cast<CUjit_option*>(jit),
                jit_values, jit_count, reinterpret_cast<CUlibraryOption*>(options), values, count);
  });
}

RUNTIME_API cudaLibraryUnload(cudaLibrary_t library) {
  return with_context([&](const Driver& api) { return call(api.cuLibraryUnload, library); });
}

RUNTIME_API cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  return with_context([&](const Driver& api) {
    const cudaError_t status = call(api.cuLibraryGetKernel, kernel, library, name);
    if (status == cudaSuccess) remember_kernel(*kernel);
    return status;
  });
}

RUNTIME_API cudaLibraryGetGlobal(void** address, size_t* bytes, cudaLibrary_t library,
                                 const char* name) {
  return with_context([&](const Driver& api) {
    return call(api.cuLibraryGetGlobal, reinterpret_cast<CUdeviceptr*>(address), bytes, library,
                name);
  });
}

RUNTIME_API cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
  return with_context(
      [&](const Driver& api) { return call(api.cuLibraryGetKernelCount, count, library); });
}

RUNTIME_API cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned count,
                                        cudaLibrary_t library) {
  return with_context([&](const Driver& api) {
    const cudaError_t status = call(api.cuLibraryEnumerateKernels, kernels, count, library);
    for (unsigned i = 0; status == cudaSuccess && i < count; ++i) remember_kernel(kernels[i]);
    return status;
  });
}

RUNTIME_API cudaGetSymbolAddress(void** pointer, const void* symbol) {
  return with_context([&](const Driver&) {
    CUdeviceptr address = 0;
    size_t bytes = 0;
    const cudaError_t status = find_variable(symbol, &address, &bytes);
    if (status == cudaSuccess) *pointer = reinterpret_cast<void*>(address);
    return status;
  });
}

RUNTIME_API cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  return with_context([&](const Driver&) {
    CUdeviceptr address = 0;
    return find_variable(symbol, &address, bytes);
  });
}

}  // namespace simgpu::runtime
