// SPDX-License-Identifier: Apache-2.0
// A library of twins for the tests: one with everything, one that declares nothing, one of a kernel
// that no image has.

#include "tests/simgpu/twin.h"

namespace {

const size_t kOffsets[] = {0, 8};
const size_t kSizes[] = {8, 4};

struct Arguments {
  float* data;
  int count;
};

Arguments unpack(void* const* arguments) {
  return {*static_cast<float* const*>(arguments[0]), *static_cast<const int*>(arguments[1])};
}

void fill_run(const SimgpuLaunch* launch, void* const* raw) {
  const Arguments arguments = unpack(raw);
  auto* data = static_cast<float*>(simgpu_pointer(launch, arguments.data));
  for (int i = 0; i < arguments.count; ++i) data[i] = static_cast<float>(i) + 0.5F;
}

void fill_access(const SimgpuLaunch*, void* const* raw, SimgpuAccessSink sink, void* context) {
  const Arguments arguments = unpack(raw);
  sink(context, arguments.data, static_cast<size_t>(arguments.count) * sizeof(float), 1);
}

double fill_flops(const SimgpuLaunch*, void* const* raw) {
  return unpack(raw).count;
}

const SimgpuTwin kTwins[] = {
    {"fill", 2, kOffsets, kSizes, fill_run, fill_access, fill_flops},
    {"fill_undeclared", 2, kOffsets, kSizes, fill_run, nullptr, nullptr},
    {"twin_only", 2, kOffsets, kSizes, fill_run, fill_access, nullptr},
};
const SimgpuTwinTable kTable = {SIMGPU_TWIN_VERSION, 3, kTwins};

}  // namespace

extern "C" __attribute__((visibility("default"))) const SimgpuTwinTable* simgpu_twins(void) {
  return &kTable;
}
