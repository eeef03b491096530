// SPDX-License-Identifier: Apache-2.0
// saxpy's twin, from the same element function as the kernel. It adds nothing of its own, but
// leaves a mark in the environment of the tests: SIMGPU_TEST_TWIN_RAN is how they know that it ran
// and not the PTX.

#include <cstdlib>

#include "tests/simgpu/runtime/tests/saxpy.h"
#include "tests/simgpu/twin.h"

namespace {

struct Arguments {
  float a;
  const float* x;
  float* y;
  int n;
};

Arguments unpack(void* const* raw) {
  return {*static_cast<const float*>(raw[0]), *static_cast<const float* const*>(raw[1]),
          *static_cast<float* const*>(raw[2]), *static_cast<const int*>(raw[3])};
}

void run(const SimgpuLaunch* launch, void* const* raw) {
  const Arguments arguments = unpack(raw);
  const auto* x = static_cast<const float*>(simgpu_pointer(launch, arguments.x));
  auto* y = static_cast<float*>(simgpu_pointer(launch, arguments.y));
  for (int i = 0; i < arguments.n; ++i) saxpy_element(arguments.a, x, y, i);
  setenv("SIMGPU_TEST_TWIN_RAN", "1", 1);
}

void access(const SimgpuLaunch*, void* const* raw, SimgpuAccessSink sink, void* context) {
  const Arguments arguments = unpack(raw);
  const size_t bytes = static_cast<size_t>(arguments.n) * sizeof(float);
  sink(context, arguments.x, bytes, 0);
  sink(context, arguments.y, bytes, 0);
  sink(context, arguments.y, bytes, 1);
}

double flops(const SimgpuLaunch*, void* const* raw) {
  return 2.0 * unpack(raw).n;
}

const size_t kOffsets[] = {0, 8, 16, 24};
const size_t kSizes[] = {4, 8, 8, 4};
const SimgpuTwin kTwins[] = {{"saxpy", 4, kOffsets, kSizes, run, access, flops}};
const SimgpuTwinTable kTable = {SIMGPU_TWIN_VERSION, 1, kTwins};

}  // namespace

extern "C" __attribute__((visibility("default"))) const SimgpuTwinTable* simgpu_twins(void) {
  return &kTable;
}
