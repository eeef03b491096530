// SPDX-License-Identifier: Apache-2.0
// The clients' kernels. Compiled to PTX, which the clients load at run time; the simulated GPU
// interprets it, or takes what twins.cpp makes of the same lines. All take words of 32 bits and any
// grid.

#include <stdint.h>

#ifndef FOR_EACH_WORD
#define FOR_EACH_WORD(i, count) \
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < (count); i += gridDim.x * blockDim.x)
#endif

// to[i] = seed + i
extern "C" __global__ void fill(uint32_t* to, uint32_t count, uint32_t seed) {
  FOR_EACH_WORD(i, count) to[i] = seed + i;
}

// to[i] = to[i] * 31 + from[i]
extern "C" __global__ void mix(uint32_t* to, const uint32_t* from, uint32_t count) {
  FOR_EACH_WORD(i, count) to[i] = to[i] * 31 + from[i];
}

// As mix over every entry of a table in device memory that is not null.
extern "C" __global__ void mix_table(uint32_t* to, uint32_t* const* table, uint32_t entries,
                                     uint32_t count) {
  FOR_EACH_WORD(i, count) {
    uint32_t value = to[i];
    for (uint32_t e = 0; e < entries; ++e) {
      if (table[e] != nullptr) value = value * 31 + table[e][i];
    }
    to[i] = value;
  }
}

// A table by value, as large as parameters may be, with four entries in use that stand far apart.
struct Table {
  uint32_t count;
  uint32_t unused;
  uint32_t* at[4093];
};
extern "C" __global__ void mix_struct(uint32_t* to, __grid_constant__ const Table table) {
  FOR_EACH_WORD(i, table.count) {
    uint32_t value = to[i];
    value = value * 31 + table.at[0][i];
    value = value * 31 + table.at[17][i];
    value = value * 31 + table.at[1000][i];
    to[i] = value * 31 + table.at[4092][i];
  }
}

// Builds a table on the device: entry e points to the e-th of the buffers named here.
extern "C" __global__ void build_table(uint32_t** table, uint32_t* a, uint32_t* b, uint32_t* c) {
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    table[0] = a;
    table[1] = b;
    table[2] = c;
  }
}

// As fill, into the first buffer of a table.
extern "C" __global__ void fill_table(uint32_t* const* table, uint32_t count, uint32_t seed) {
  FOR_EACH_WORD(i, count) table[0][i] = seed + i;
}

// As mix, under a name of NCCL's.
extern "C" __global__ void ncclDevKernel_Mix(uint32_t* to, const uint32_t* from, uint32_t count) {
  FOR_EACH_WORD(i, count) to[i] = to[i] * 31 + from[i];
}

// Another parameter list, for modules that take each other's place.
extern "C" __global__ void mix_reversed(uint32_t count, uint32_t unused, const uint32_t* from,
                                        uint32_t* to) {
  FOR_EACH_WORD(i, count) to[i] = to[i] * 31 + from[i] + unused;
}
