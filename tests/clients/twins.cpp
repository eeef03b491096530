// SPDX-License-Identifier: Apache-2.0
// The kernels that scenarios are made of, from the same source, for the simulated GPU's own
// processor: interpreted they take most of a scenario's time. The others are interpreted.

#include "tests/simgpu/twin.h"

#include <cstdint>

#define __global__
#define __grid_constant__
#define FOR_EACH_WORD(i, count) for (uint32_t i = 0; i < (count); ++i)
struct {
  unsigned x;
} constexpr blockIdx = {0}, threadIdx = {0};
#include "tests/clients/kernels.cu"

namespace {

constexpr size_t kInUse[] = {0, 17, 1000, 4092};  // of a table that is passed by value

template <typename T>
T argument(void* const* raw, int i) {
  return *static_cast<const T*>(raw[i]);
}

// A device pointer as the executor sees it.
uint32_t* seen(const SimgpuLaunch* launch, const void* pointer) {
  return static_cast<uint32_t*>(simgpu_pointer(launch, pointer));
}

void run_fill(const SimgpuLaunch* launch, void* const* raw) {
  fill(seen(launch, argument<void*>(raw, 0)), argument<uint32_t>(raw, 1),
       argument<uint32_t>(raw, 2));
}

void fill_access(const SimgpuLaunch*, void* const* raw, SimgpuAccessSink sink, void* context) {
  sink(context, argument<void*>(raw, 0), argument<uint32_t>(raw, 1) * sizeof(uint32_t), 1);
}

void run_mix(const SimgpuLaunch* launch, void* const* raw) {
  mix(seen(launch, argument<void*>(raw, 0)), seen(launch, argument<void*>(raw, 1)),
      argument<uint32_t>(raw, 2));
}

void mix_access(const SimgpuLaunch*, void* const* raw, SimgpuAccessSink sink, void* context) {
  const size_t bytes = argument<uint32_t>(raw, 2) * sizeof(uint32_t);
  sink(context, argument<void*>(raw, 0), bytes, 0);
  sink(context, argument<void*>(raw, 1), bytes, 0);
  sink(context, argument<void*>(raw, 0), bytes, 1);
}

void run_mix_struct(const SimgpuLaunch* launch, void* const* raw) {
  auto table = argument<Table>(raw, 1);
  for (const size_t i : kInUse) table.at[i] = seen(launch, table.at[i]);
  mix_struct(seen(launch, argument<uint32_t*>(raw, 0)), table);
}

void mix_struct_access(const SimgpuLaunch*, void* const* raw, SimgpuAccessSink sink,
                       void* context) {
  const auto& table = *static_cast<const Table*>(raw[1]);
  const size_t bytes = table.count * sizeof(uint32_t);
  for (const size_t i : kInUse) sink(context, table.at[i], bytes, 0);
  sink(context, argument<void*>(raw, 0), bytes, 0);
  sink(context, argument<void*>(raw, 0), bytes, 1);
}

const size_t kFillOffsets[] = {0, 8, 12};
const size_t kFillSizes[] = {8, 4, 4};
const size_t kMixOffsets[] = {0, 8, 16};
const size_t kMixSizes[] = {8, 8, 4};
const size_t kStructOffsets[] = {0, 8};
const size_t kStructSizes[] = {8, sizeof(Table)};
const SimgpuTwin kTwins[] = {
    {"fill", 3, kFillOffsets, kFillSizes, run_fill, fill_access, nullptr},
    {"mix_struct", 2, kStructOffsets, kStructSizes, run_mix_struct, mix_struct_access, nullptr},
    {"mix", 3, kMixOffsets, kMixSizes, run_mix, mix_access, nullptr},
};
const SimgpuTwinTable kTable = {SIMGPU_TWIN_VERSION, 3, kTwins};

}  // namespace

extern "C" __attribute__((visibility("default"))) const SimgpuTwinTable* simgpu_twins(void) {
  return &kTable;
}
