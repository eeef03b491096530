// SPDX-License-Identifier: Apache-2.0
// What is known of a kernel: parameters, attributes, occupancy. A CUkernel and a CUfunction are the
// same object.
#include <algorithm>

#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/objects.h"

using simgpu::Call;
using simgpu::Function;
using simgpu::function_handles;
using simgpu::Needs;

namespace {

constexpr int kMaxThreads = 1024;
constexpr int kMaxDynamicShared = 49152;
constexpr int kMaxOptInShared = 166912;
constexpr int kRegisters = 32;
constexpr int kSharedOfProcessor = 167936;
constexpr int kSharedReserved = 1024;  // of each block

CUresult find(Call& call, const void* handle, Function** function) {
  if (call.error != CUDA_SUCCESS) return call.error;
  *function = function_handles().find(handle);
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult parameter_info(const void* handle, size_t index, size_t* offset, size_t* size) {
  Call call(Needs::kDriver);
  Function* function = nullptr;
  if (CUresult error = find(call, handle, &function); error != CUDA_SUCCESS) return error;
  const auto& parameters = function->kernel->parameters();
  if (offset == nullptr || index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = parameters[index].offset;
  if (size != nullptr) *size = parameters[index].size;
  return CUDA_SUCCESS;
}

CUresult get_attribute(int* value, CUfunction_attribute attribute, const void* handle) {
  Call call(Needs::kDriver);
  Function* function = nullptr;
  if (CUresult error = find(call, handle, &function); error != CUDA_SUCCESS) return error;
  if (value == nullptr || attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = kMaxThreads;
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = kRegisters;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = 80;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = std::max(kMaxDynamicShared, function->attributes[attribute]);
      break;
    default:
      *value = function->attributes[attribute];
  }
  return CUDA_SUCCESS;
}

CUresult set_attribute(const void* handle, CUfunction_attribute attribute, int value) {
  Call call(Needs::kDriver);
  Function* function = nullptr;
  if (CUresult error = find(call, handle, &function); error != CUDA_SUCCESS) return error;
  const bool can_be_set = attribute >= CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
                          attribute < CU_FUNC_ATTRIBUTE_MAX;
  if (!can_be_set) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
      (value < 0 || value > kMaxOptInShared)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  function->attributes[attribute] = value;
  return CUDA_SUCCESS;
}

CUresult get_name(const char** name, const void* handle) {
  Call call(Needs::kDriver);
  Function* function = nullptr;
  if (CUresult error = find(call, handle, &function); error != CUDA_SUCCESS) return error;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = function->kernel->name().c_str();
  return CUDA_SUCCESS;
}

int blocks_by_threads(int block) {
  return block > kMaxThreads ? 0 : std::min(32, 2048 / block);
}

CUresult resource_of_current(CUdevResource* resource) {
  CUcontext current = nullptr;
  const CUresult error = cuCtxGetCurrent(&current);
  return error != CUDA_SUCCESS ? error
                               : cuCtxGetDevResource(current, resource, CU_DEV_RESOURCE_TYPE_SM);
}

// Blocks that fit by threads and shared memory; registers never limit.
CUresult max_active_blocks(int* blocks, const void* handle, int block, size_t shared) {
  Call call(Needs::kContext);
  Function* function = nullptr;
  if (CUresult error = find(call, handle, &function); error != CUDA_SUCCESS) return error;
  if (blocks == nullptr || block <= 0) return CUDA_ERROR_INVALID_VALUE;
  int fit = blocks_by_threads(block);
  if (shared > 0)
    fit = std::min(fit, static_cast<int>(kSharedOfProcessor / (shared + kSharedReserved)));
  *blocks = fit;
  return CUDA_SUCCESS;
}

CUresult potential_block(int* grid, int* block, const void* handle, CUoccupancyB2DSize shared_of,
                         size_t shared, int limit) {
  int best = limit > 0 ? std::min(limit, kMaxThreads) : kMaxThreads;
  if (shared_of != nullptr) shared = shared_of(best);
  int blocks = 0;
  const CUresult result = max_active_blocks(&blocks, handle, best, shared);
  if (result != CUDA_SUCCESS) return result;
  if (grid == nullptr || block == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *block = best;
  *grid = blocks * 108;
  return CUDA_SUCCESS;
}

}  // namespace

SIMGPU_API cuFuncGetParamInfo(CUfunction f, size_t index, size_t* offset, size_t* size) {
  const simgpu::ApiName api_name(__func__);
  return parameter_info(f, index, offset, size);
}
SIMGPU_API cuKernelGetParamInfo(CUkernel k, size_t index, size_t* offset, size_t* size) {
  const simgpu::ApiName api_name(__func__);
  return parameter_info(k, index, offset, size);
}
SIMGPU_API cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction f) {
  const simgpu::ApiName api_name(__func__);
  return get_attribute(value, attribute, f);
}
SIMGPU_API cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel k, CUdevice) {
  const simgpu::ApiName api_name(__func__);
  return get_attribute(value, attribute, k);
}
SIMGPU_API cuFuncSetAttribute(CUfunction f, CUfunction_attribute attribute, int value) {
  const simgpu::ApiName api_name(__func__);
  return set_attribute(f, attribute, value);
}
SIMGPU_API cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel k, CUdevice) {
  const simgpu::ApiName api_name(__func__);
  return set_attribute(k, attribute, value);
}
SIMGPU_API cuFuncGetName(const char** name, CUfunction f) {
  const simgpu::ApiName api_name(__func__);
  return get_name(name, f);
}
SIMGPU_API cuKernelGetName(const char** name, CUkernel k) {
  const simgpu::ApiName api_name(__func__);
  return get_name(name, k);
}

SIMGPU_API cuKernelGetFunction(CUfunction* f, CUkernel k) {
  Call call(Needs::kContext);
  Function* function = nullptr;
  if (CUresult error = find(call, k, &function); error != CUDA_SUCCESS) return error;
  if (f == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *f = reinterpret_cast<CUfunction>(function);
  return CUDA_SUCCESS;
}

SIMGPU_API cuKernelGetLibrary(CUlibrary* library, CUkernel k) {
  Call call(Needs::kDriver);
  Function* function = nullptr;
  if (CUresult error = find(call, k, &function); error != CUDA_SUCCESS) return error;
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *library = reinterpret_cast<CUlibrary>(function->code);
  return CUDA_SUCCESS;
}

SIMGPU_API cuFuncGetModule(CUmodule* module, CUfunction f) {
  Call call(Needs::kDriver);
  Function* function = nullptr;
  if (CUresult error = find(call, f, &function); error != CUDA_SUCCESS) return error;
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *module = reinterpret_cast<CUmodule>(function->code);
  return CUDA_SUCCESS;
}

SIMGPU_API cuFuncSetCacheConfig(CUfunction f, CUfunc_cache config) {
  Call call(Needs::kDriver);
  Function* function = nullptr;
  if (CUresult error = find(call, f, &function); error != CUDA_SUCCESS) return error;
  function->cache_config = config;
  return CUDA_SUCCESS;
}

SIMGPU_API cuKernelSetCacheConfig(CUkernel k, CUfunc_cache config, CUdevice) {
  const simgpu::ApiName api_name(__func__);
  return cuFuncSetCacheConfig(reinterpret_cast<CUfunction>(k), config);
}

SIMGPU_API cuFuncSetSharedMemConfig(CUfunction f, CUsharedconfig) {
  Call call(Needs::kDriver);
  Function* function = nullptr;
  return find(call, f, &function);
}

SIMGPU_API cuFuncLoad(CUfunction f) {
  Call call(Needs::kDriver);
  Function* function = nullptr;
  return find(call, f, &function);
}

SIMGPU_API cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction f) {
  Call call(Needs::kDriver);
  Function* function = nullptr;
  if (CUresult error = find(call, f, &function); error != CUDA_SUCCESS) return error;
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

SIMGPU_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction f, int block,
                                                       size_t shared) {
  const simgpu::ApiName api_name(__func__);
  return max_active_blocks(blocks, f, block, shared);
}
SIMGPU_API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction f,
                                                                int block, size_t shared,
                                                                unsigned int) {
  const simgpu::ApiName api_name(__func__);
  return max_active_blocks(blocks, f, block, shared);
}
SIMGPU_API cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction f,
                                            CUoccupancyB2DSize shared_of, size_t shared,
                                            int limit) {
  const simgpu::ApiName api_name(__func__);
  return potential_block(grid, block, f, shared_of, shared, limit);
}
SIMGPU_API cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction f,
                                                     CUoccupancyB2DSize shared_of, size_t shared,
                                                     int limit, unsigned int) {
  const simgpu::ApiName api_name(__func__);
  return potential_block(grid, block, f, shared_of, shared, limit);
}
SIMGPU_API cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction f, int blocks,
                                                   int block) {
  Call call(Needs::kContext);
  Function* function = nullptr;
  if (CUresult error = find(call, f, &function); error != CUDA_SUCCESS) return error;
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (blocks <= 0 || block <= 0 || blocks > blocks_by_threads(block)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const int share = kSharedOfProcessor / blocks - kSharedReserved;
  *bytes = static_cast<size_t>(std::min(share, kMaxOptInShared));
  return CUDA_SUCCESS;
}

// Devices of compute capability 8 have no clusters: each block is its own.
SIMGPU_API cuOccupancyMaxPotentialClusterSize(int* size, CUfunction f, const CUlaunchConfig* what) {
  Call call(Needs::kContext);
  Function* function = nullptr;
  if (CUresult error = find(call, f, &function); error != CUDA_SUCCESS) return error;
  if (size == nullptr || what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *size = 1;
  return CUDA_SUCCESS;
}
SIMGPU_API cuOccupancyMaxActiveClusters(int* clusters, CUfunction f, const CUlaunchConfig* what) {
  const simgpu::ApiName api_name(__func__);
  if (clusters == nullptr || what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned size = 0;  // "the cluster size must be specified in config"
  for (unsigned i = 0; i < what->numAttrs; ++i) {
    if (what->attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& dimensions = what->attrs[i].value.clusterDim;
    size = dimensions.x * dimensions.y * dimensions.z;
  }
  if (size != 1) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  const unsigned threads = what->blockDimX * what->blockDimY * what->blockDimZ;
  const CUresult error =
      max_active_blocks(clusters, f, static_cast<int>(threads), what->sharedMemBytes);
  if (error != CUDA_SUCCESS) return error;
  CUdevResource processors;
  if (CUresult asked = resource_of_current(&processors); asked != CUDA_SUCCESS) return asked;
  *clusters *= static_cast<int>(processors.sm.smCount);
  return CUDA_SUCCESS;
}
