// SPDX-License-Identifier: Apache-2.0
// Built as "<executable of the tests>.twins.so": found without being named anywhere.

#include "tests/simgpu/twin.h"

namespace {

const size_t kOffset = 0;
const size_t kSize = 8;

void run(const SimgpuLaunch* launch, void* const* arguments) {
  *static_cast<int*>(simgpu_pointer(launch, *static_cast<int* const*>(arguments[0]))) = 77;
}

const SimgpuTwin kTwins[] = {{"beside_executable", 1, &kOffset, &kSize, run, nullptr, nullptr}};
const SimgpuTwinTable kTable = {SIMGPU_TWIN_VERSION, 1, kTwins};

}  // namespace

extern "C" __attribute__((visibility("default"))) const SimgpuTwinTable* simgpu_twins(void) {
  return &kTable;
}
