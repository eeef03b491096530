// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/driver/objects.h"

#include "tests/simgpu/driver/statistics.h"

namespace simgpu {

namespace {

template <class T>
T& leaked() {
  static T* instance = new T;
  return *instance;
}

}  // namespace

bool EventHandle::recorded_elsewhere() const {
  return shared != nullptr && shared->recorded() != shared_number;
}

HandlePool<Context>& contexts() {
  return leaked<HandlePool<Context>>();
}
void lose(Context& context, CUresult error) {
  contexts().for_each([&](Context& each) {
    if (&each.owner() == &context.owner() && each.sticky == CUDA_SUCCESS) each.sticky = error;
  });
}
HandlePool<StreamHandle>& stream_handles() {
  return leaked<HandlePool<StreamHandle>>();
}
HandlePool<EventHandle>& event_handles() {
  return leaked<HandlePool<EventHandle>>();
}
HandlePool<Code>& code_handles() {
  return leaked<HandlePool<Code>>();
}
HandlePool<Function>& function_handles() {
  return leaked<HandlePool<Function>>();
}
Statistics& statistics() {
  return leaked<Statistics>();
}

}  // namespace simgpu
