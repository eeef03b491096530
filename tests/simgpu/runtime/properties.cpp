// SPDX-License-Identifier: Apache-2.0
// cudaGetDeviceProperties: every member from the driver's attributes.

#include <cuda_runtime_api.h>

#include "tests/simgpu/runtime/call.h"
#include "tests/simgpu/runtime/devices.h"

namespace simgpu::runtime {

namespace {

class Reader {
 public:
  Reader(const Driver& api, CUdevice device) : api_(api), device_(device) {}

  // An attribute that the driver does not know leaves the member at 0.
  template <class Member>
  void read(Member* member, CUdevice_attribute attribute) {
    int value = 0;
    if (call(api_.cuDeviceGetAttribute, &value, attribute, device_) == cudaSuccess) {
      *member = static_cast<Member>(value);
    }
  }

  template <size_t count>
  void read(int (&members)[count], const CUdevice_attribute (&attributes)[count]) {
    for (size_t i = 0; i < count; ++i) read(&members[i], attributes[i]);
  }

 private:
  const Driver& api_;
  CUdevice device_;
};

void read_compute(Reader* from, cudaDeviceProp* to) {
  from->read(&to->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  from->read(&to->minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  from->read(&to->multiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  from->read(&to->warpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  from->read(&to->regsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  from->read(&to->regsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  from->read(&to->maxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  from->read(&to->maxThreadsPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  from->read(&to->maxBlocksPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  from->read(to->maxThreadsDim,
             {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
              CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z});
  from->read(to->maxGridSize,
             {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
              CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z});
  from->read(&to->concurrentKernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS);
  from->read(&to->asyncEngineCount, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
  from->read(&to->streamPrioritiesSupported, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED);
  from->read(&to->computePreemptionSupported, CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED);
  from->read(&to->cooperativeLaunch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
  from->read(&to->clusterLaunch, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
  from->read(&to->unifiedFunctionPointers, CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS);
}

void read_memory(Reader* from, cudaDeviceProp* to) {
  from->read(&to->sharedMemPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  from->read(&to->sharedMemPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  from->read(&to->sharedMemPerMultiprocessor,
             CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  from->read(&to->reservedSharedMemPerBlock, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  from->read(&to->totalConstMem, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  from->read(&to->memPitch, CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  from->read(&to->memoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  from->read(&to->l2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  from->read(&to->persistingL2CacheMaxSize, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE);
  from->read(&to->accessPolicyMaxWindowSize, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE);
  from->read(&to->globalL1CacheSupported, CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED);
  from->read(&to->localL1CacheSupported, CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED);
  from->read(&to->ECCEnabled, CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
  from->read(&to->unifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
  from->read(&to->managedMemory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
  from->read(&to->concurrentManagedAccess, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
  from->read(&to->pageableMemoryAccess, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
  from->read(&to->pageableMemoryAccessUsesHostPageTables,
             CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES);
  from->read(&to->directManagedMemAccessFromHost,
             CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST);
  from->read(&to->canMapHostMemory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
  from->read(&to->canUseHostPointerForRegisteredMem,
             CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
  from->read(&to->hostRegisterSupported, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
  from->read(&to->hostRegisterReadOnlySupported,
             CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED);
  from->read(&to->hostNativeAtomicSupported, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED);
  from->read(&to->memoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
  from->read(&to->memoryPoolSupportedHandleTypes,
             CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES);
  from->read(&to->gpuDirectRDMASupported, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
  from->read(&to->gpuDirectRDMAFlushWritesOptions,
             CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
  from->read(&to->gpuDirectRDMAWritesOrdering, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING);
  from->read(&to->hostNumaId, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
  from->read(&to->deviceNumaConfig, CU_DEVICE_ATTRIBUTE_NUMA_CONFIG);
  from->read(&to->deviceNumaId, CU_DEVICE_ATTRIBUTE_NUMA_ID);
}

void read_board(Reader* from, cudaDeviceProp* to) {
  from->read(&to->pciBusID, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
  from->read(&to->pciDeviceID, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
  from->read(&to->pciDomainID, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
  from->read(&to->integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED);
  from->read(&to->tccDriver, CU_DEVICE_ATTRIBUTE_TCC_DRIVER);
  from->read(&to->isMultiGpuBoard, CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD);
  from->read(&to->multiGpuBoardGroupID, CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID);
  from->read(&to->ipcEventSupported, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED);
  from->read(&to->mpsEnabled, CU_DEVICE_ATTRIBUTE_MPS_ENABLED);
}

void read_textures(Reader* from, cudaDeviceProp* to) {
  from->read(&to->textureAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  from->read(&to->texturePitchAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT);
  from->read(&to->surfaceAlignment, CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT);
  from->read(&to->maxTexture1D, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH);
  from->read(to->maxTexture2D, {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH,
                                CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT});
  from->read(to->maxTexture3D, {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH,
                                CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT,
                                CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH});
}

}  // namespace

RUNTIME_API cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return with_driver([&](const Driver& api) {
    if (properties == nullptr) return cudaErrorInvalidValue;
    cudaError_t status = check_device(device);
    CUdevice handle = 0;
    if (status == cudaSuccess) status = call(api.cuDeviceGet, &handle, device);
    if (status != cudaSuccess) return status;
    *properties = {};
    status = call(api.cuDeviceGetName, properties->name, int{sizeof(properties->name)}, handle);
    if (status == cudaSuccess) {
      status = call(api.cuDeviceGetUuid, reinterpret_cast<CUuuid*>(&properties->uuid), handle);
    }
    if (status == cudaSuccess) {
      status = call(api.cuDeviceTotalMem, &properties->totalGlobalMem, handle);
    }
    Reader reader(api, handle);
    read_compute(&reader, properties);
    read_memory(&reader, properties);
    read_board(&reader, properties);
    read_textures(&reader, properties);
    return status;
  });
}

}  // namespace simgpu::runtime
