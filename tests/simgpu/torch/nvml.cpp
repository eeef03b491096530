// SPDX-License-Identifier: Apache-2.0
// libnvidia-ml.so.1: how many devices there are, and (asked after a failed allocation) that no
// other process uses them. Looked up by name at run time.

#include <cstdio>
#include <cstdlib>

#define SIMGPU_LIBRARY_API extern "C" __attribute__((visibility("default"))) int

namespace {

constexpr int kSuccess = 0;
constexpr int kInvalidArgument = 2;
constexpr int kCudaVersion = 13000;

unsigned device_count() {
  const char* devices = std::getenv("SIMGPU_DEVICES");
  return devices == nullptr ? 1 : static_cast<unsigned>(std::atoi(devices));
}

}  // namespace

SIMGPU_LIBRARY_API nvmlInit_v2() {
  return kSuccess;
}

SIMGPU_LIBRARY_API nvmlShutdown() {
  return kSuccess;
}

SIMGPU_LIBRARY_API nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = kCudaVersion;
  return kSuccess;
}

SIMGPU_LIBRARY_API nvmlDeviceGetCount_v2(unsigned* count) {
  *count = device_count();
  return kSuccess;
}

// A handle is the device's number and one, for none is null.
SIMGPU_LIBRARY_API nvmlDeviceGetHandleByIndex_v2(unsigned index, size_t* device) {
  if (index >= device_count()) return kInvalidArgument;
  *device = index + 1;
  return kSuccess;
}

SIMGPU_LIBRARY_API nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, size_t* device) {
  unsigned domain = 0;
  unsigned bus = 0;
  if (std::sscanf(bus_id, "%x:%x", &domain, &bus) != 2) return kInvalidArgument;
  *device = bus + 1;
  return kSuccess;
}

SIMGPU_LIBRARY_API nvmlDeviceGetComputeRunningProcesses(size_t, unsigned* count, void*) {
  *count = 0;
  return kSuccess;
}
