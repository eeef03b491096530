// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>

#include <cstdint>
#include <string>

#include "interpose/cli/doctor.h"
#include "interpose/cli/driver.h"
#include "profiler/base/units.h"

namespace offload::cli {
namespace {

constexpr int kLayoutsSince = 12040;  // cuFuncGetParamInfo
constexpr int kGranularityUsual = 2 << 20;

void check_entries(const Driver& driver, Findings& findings) {
  std::string missing;
  int present = 0;
  int all = 0;
#define NEEDED(symbol, ...) \
  if (!driver.has(#symbol)) missing += std::string(missing.empty() ? "" : ", ") + #symbol;
#define HOOK(symbol, ...) \
  ++all;                  \
  present += driver.has(#symbol);
#include "interpose/hooks.def"
  if (!missing.empty()) {
    findings.problem("entries", "the driver lacks " + missing, "update the driver");
  }
  std::string text = std::to_string(present) + " of " + std::to_string(all) +
                     " entry points that liboffload stands before";
  findings.ok("entries", text);
}

int attribute(const Driver& driver, CUdevice_attribute which, CUdevice device) {
  int value = 0;
  return CALL(driver, cuDeviceGetAttribute, &value, which, device) == CUDA_SUCCESS ? value : 0;
}

std::uint64_t granularity(const Driver& driver, CUmemLocationType kind, int id) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = kind;
  properties.location.id = id;
  std::size_t bytes = 0;
  CUresult code = CALL(driver, cuMemGetAllocationGranularity, &bytes, &properties,
                       CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  return code == CUDA_SUCCESS ? bytes : 0;
}

void check_device(const Driver& driver, int index, Findings& findings) {
  std::string subject = "device " + std::to_string(index);
  CUdevice device = 0;
  CUresult code = CALL(driver, cuDeviceGet, &device, index);
  if (code != CUDA_SUCCESS) {
    findings.problem(subject, "cuDeviceGet: " + driver.name(code),
                     "run nvidia-smi to see its state");
    return;
  }
  char name[256] = "";
  std::size_t total = 0;
  CALL(driver, cuDeviceGetName, name, static_cast<int>(sizeof name - 1), device);
  CALL(driver, cuDeviceTotalMem, &total, device);
  std::string compute =
      std::to_string(attribute(driver, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device)) +
      "." + std::to_string(attribute(driver, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  findings.ok(subject, std::string(name) + ", " + format_size(total).c_str() +
                           ", compute capability " + compute);
  if (attribute(driver, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device) == 0) {
    findings.problem(
        subject, "no virtual memory management: nothing can be moved",
        "use a device and driver that support it (Linux, compute capability 6.0 or newer)");
    return;
  }
  std::uint64_t step = granularity(driver, CU_MEM_LOCATION_TYPE_DEVICE, index);
  if (step == 0) {
    findings.problem(subject, "cuMemGetAllocationGranularity fails", "update the driver");
  } else {
    findings.ok(
        subject,
        std::string("virtual memory management in steps of ") + format_size(step).c_str() +
            (step > kGranularityUsual ? ", more than usual: small buffers waste more" : ""));
  }
  if (attribute(driver, CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                device) == 0) {
    findings.note(
        subject,
        "host memory cannot be mapped at a buffer's address: OFFLOAD_EVICTED=auto means unmapped",
        "driver 12.2 or newer, on a system that supports it, lets most stray accesses work");
  } else {
    int node = attribute(driver, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, device);
    std::uint64_t host_step =
        granularity(driver, CU_MEM_LOCATION_TYPE_HOST_NUMA, node < 0 ? 0 : node);
    findings.ok(subject, "host memory can be mapped at a buffer's address, node " +
                             std::to_string(node) + ", in steps of " +
                             format_size(host_step).c_str());
  }
}

}  // namespace

void check_driver(Findings& findings) {
  Driver driver("libcuda.so.1");
  if (!driver.loaded()) {
    findings.problem("driver", driver.error(),
                     "install NVIDIA's driver; run nvidia-smi to check it");
    return;
  }
  CUresult code = CALL(driver, cuInit, 0u);
  if (code != CUDA_SUCCESS) {
    findings.problem("driver", "cuInit: " + driver.name(code),
                     "run nvidia-smi to see whether the driver works");
    return;
  }
  int version = 0;
  CALL(driver, cuDriverGetVersion, &version);
  std::string text = "libcuda.so.1 for CUDA " + std::to_string(version / 1000) + "." +
                     std::to_string(version % 1000 / 10);
  if (version < kLayoutsSince) {
    findings.problem("driver",
                     text + " does not tell what a kernel's parameters are: nothing can be moved",
                     "update the driver to CUDA 12.4 or newer");
  } else {
    findings.ok("driver", text);
  }
  check_entries(driver, findings);
  int count = 0;
  code = CALL(driver, cuDeviceGetCount, &count);
  if (code != CUDA_SUCCESS || count == 0) {
    findings.problem("driver", "no device is visible", "check CUDA_VISIBLE_DEVICES and nvidia-smi");
  }
  for (int index = 0; index < count; ++index) check_device(driver, index, findings);
}

}  // namespace offload::cli
