// SPDX-License-Identifier: Apache-2.0
// What is known of a kernel: attributes, occupancy (CUDA Driver API reference, "Execution Control",
// "Library Management" and "Occupancy"). The device is one of compute capability 8.0: 2048 threads,
// 32 blocks and 164 KiB of shared memory a multiprocessor, of which each block takes 1 KiB itself.
#include "tests/simgpu/tests/support/older.h"

namespace simgpu::test {
namespace {

CUkernel kernel_of(CUfunction function) {
  return reinterpret_cast<CUkernel>(function);
}

TEST(Functions, AttributesAreKept) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    int value = 0;
    CU(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel_of(gpu.add),
                            0));
    EXPECT_EQ(value, 1024);
    constexpr auto kShared = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    CU(cuFuncGetAttribute(&value, kShared, gpu.add));
    EXPECT_EQ(value, 48 << 10);
    CU(cuKernelSetAttribute(kShared, 100 << 10, kernel_of(gpu.add), 0));
    CU(cuFuncGetAttribute(&value, kShared, gpu.add));
    EXPECT_EQ(value, 100 << 10);
    CU(cuFuncGetAttribute(&value, kShared, gpu.copy));
    EXPECT_EQ(value, 48 << 10);  // of one kernel alone
    // More than a block may opt in to; and what only the compiler sets.
    EXPECT_EQ(cuKernelSetAttribute(kShared, 164 << 10, kernel_of(gpu.add), 0),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuFuncSetAttribute(gpu.add, CU_FUNC_ATTRIBUTE_NUM_REGS, 5), CUDA_ERROR_INVALID_VALUE);
    int nothing = 0;
    const auto stray = reinterpret_cast<CUfunction>(&nothing);
    EXPECT_EQ(cuFuncSetCacheConfig(stray, CU_FUNC_CACHE_PREFER_L1), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuKernelSetCacheConfig(kernel_of(stray), CU_FUNC_CACHE_PREFER_L1, 0),
              CUDA_ERROR_INVALID_HANDLE);
    const auto set_banks = OLDER(cuFuncSetSharedMemConfig, 4020);  // deprecated
    EXPECT_EQ(set_banks(stray, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuFuncLoad(stray), CUDA_ERROR_INVALID_HANDLE);
    CU(cuFuncSetCacheConfig(gpu.add, CU_FUNC_CACHE_PREFER_L1));
    CU(cuKernelSetCacheConfig(kernel_of(gpu.add), CU_FUNC_CACHE_PREFER_L1, 0));
    CU(set_banks(gpu.add, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
    CU(cuFuncLoad(gpu.add));
    CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;
    CU(cuFuncIsLoaded(&state, gpu.add));
    EXPECT_EQ(state, CU_FUNCTION_LOADING_STATE_LOADED);
    EXPECT_EQ(cuFuncIsLoaded(&state, stray), CUDA_ERROR_INVALID_HANDLE);
  }));
}

TEST(Occupancy, BlocksByThreadsAndSharedMemory) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    struct Case {
      int threads;
      size_t shared;
      int blocks;
    };
    for (const Case& each : {Case{1024, 0, 2},
                             {256, 0, 8},
                             {32, 0, 32},
                             {2048, 0, 0},
                             {256, 40 << 10, 4},
                             {256, 81 << 10, 2},
                             {256, 100 << 10, 1}}) {
      int blocks = -1;
      CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, gpu.add, each.threads, each.shared));
      EXPECT_EQ(blocks, each.blocks) << each.threads << " " << each.shared;
      blocks = -1;
      CU(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
          &blocks, gpu.add, each.threads, each.shared, CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE));
      EXPECT_EQ(blocks, each.blocks) << each.threads << " " << each.shared;
    }
    size_t bytes = 0;
    CU(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, gpu.add, 4, 256));
    EXPECT_EQ(bytes, size_t{40 << 10});  // the other way round
    CU(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, gpu.add, 1, 256));
    EXPECT_EQ(bytes, size_t{163 << 10});
    EXPECT_EQ(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, gpu.add, 3, 1024),
              CUDA_ERROR_INVALID_VALUE);  // there is no room for three
  }));
}

TEST(Occupancy, TheBlockThatFillsTheDevice) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    int grid = 0;
    int block = 0;
    CU(cuOccupancyMaxPotentialBlockSize(&grid, &block, gpu.add, nullptr, 0, 0));
    EXPECT_EQ(block, 1024);
    EXPECT_EQ(grid, 2 * 108);
    CU(cuOccupancyMaxPotentialBlockSize(&grid, &block, gpu.add, nullptr, 0, 256));
    EXPECT_EQ(block, 256);
    EXPECT_EQ(grid, 8 * 108);
    // Shared memory by the size of the block: 80 bytes a thread, 80 KiB for the largest.
    const auto shared = [](int threads) { return static_cast<size_t>(80 * threads); };
    CU(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, gpu.add, shared, 0, 0,
                                                 CU_OCCUPANCY_DEFAULT));
    EXPECT_EQ(block, 1024);
    EXPECT_EQ(grid, 2 * 108);
    CU(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, gpu.add, nullptr, 90 << 10, 0,
                                                 CU_OCCUPANCY_DEFAULT));
    EXPECT_EQ(grid, 108);
  }));
}

// cuOccupancyMaxActiveClusters: "the cluster size must be specified in config, else the function
// will return an error". Clusters of more than one block begin with compute capability 9.0.
TEST(Occupancy, ThereAreNoClusters) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    CUlaunchAttribute attribute = {};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim = {1, 1, 1};
    CUlaunchConfig config = {};
    config.gridDimX = 100;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.blockDimX = 256;
    int size = 0;
    CU(cuOccupancyMaxPotentialClusterSize(&size, gpu.add, &config));
    EXPECT_EQ(size, 1);
    int clusters = 0;
    EXPECT_EQ(cuOccupancyMaxActiveClusters(&clusters, gpu.add, &config),
              CUDA_ERROR_INVALID_CLUSTER_SIZE);
    config.attrs = &attribute;
    config.numAttrs = 1;
    CU(cuOccupancyMaxActiveClusters(&clusters, gpu.add, &config));
    EXPECT_EQ(clusters, 8 * 108);
    attribute.value.clusterDim = {2, 1, 1};
    EXPECT_EQ(cuOccupancyMaxActiveClusters(&clusters, gpu.add, &config),
              CUDA_ERROR_INVALID_CLUSTER_SIZE);
  }));
}

}  // namespace
}  // namespace simgpu::test
