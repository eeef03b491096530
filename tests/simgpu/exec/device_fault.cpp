// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/device_fault.h"

#include "tests/simgpu/driver/objects.h"
#include "tests/simgpu/driver/say.h"
#include "tests/simgpu/driver/statistics.h"
#include "tests/simgpu/memory/address_space.h"

namespace simgpu {

void device_fault(Context& context, const std::string& operation, uintptr_t address) {
  const Mapping* mapping = address_space().find(address);
  const char* why = "which is not mapped";
  if (mapping != nullptr) why = mapping->live ? "to which it has no access" : "which was freed";
  say("illegal address: %s touched 0x%zx, %s", operation.c_str(), address, why);
  ++statistics().faults;
  lose(context, CUDA_ERROR_ILLEGAL_ADDRESS);
}

void launch_failure(Context& context, const std::string& operation) {
  say("launch failure: %s", operation.c_str());
  ++statistics().faults;
  lose(context, CUDA_ERROR_LAUNCH_FAILED);
}

}  // namespace simgpu
