// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the simulated device says of itself: a card of compute capability 8.0 with 108
// multiprocessors.

#include <cuda.h>

namespace simgpu {

// False: no such attribute.
bool device_attribute(CUdevice_attribute attribute, CUdevice device, int* value);

unsigned pci_bus(CUdevice device);

}  // namespace simgpu
