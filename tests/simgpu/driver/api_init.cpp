// SPDX-License-Identifier: Apache-2.0
// Initialisation, versions, error names, devices.
#include <cstdio>
#include <cstring>

#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/device_attributes.h"
#include "tests/simgpu/driver/error_names.h"
#include "tests/simgpu/driver/options.h"

using simgpu::Call;
using simgpu::Needs;
using simgpu::options;

namespace {

bool is_device(CUdevice device) {
  return device >= 0 && device < options().devices;
}

}  // namespace

SIMGPU_API cuInit(unsigned int flags) {
  const simgpu::ApiName api_name(__func__);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::initialize_driver();
}

SIMGPU_API cuDriverGetVersion(int* version) {
  const simgpu::ApiName api_name(__func__);
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = options().driver_version;
  return CUDA_SUCCESS;
}

SIMGPU_API cuGetErrorName(CUresult error, const char** text) {
  const simgpu::ApiName api_name(__func__);
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = simgpu::error_name(error);
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIMGPU_API cuGetErrorString(CUresult error, const char** text) {
  const simgpu::ApiName api_name(__func__);
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = simgpu::error_text(error);
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIMGPU_API cuDeviceGetCount(int* count) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = options().devices;
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGet(CUdevice* device, int ordinal) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetName(char* name, int length, CUdevice device) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<size_t>(length), "Simulated GPU");
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::memcpy(uuid->bytes, "simulated-gpu\0\0\0", sizeof uuid->bytes);
  uuid->bytes[15] = static_cast<char>(device);
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  const simgpu::ApiName api_name(__func__);
  return cuDeviceGetUuid_v2(uuid, device);
}

SIMGPU_API cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = options().memory_bytes;
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  return simgpu::device_attribute(attribute, device, value) ? CUDA_SUCCESS
                                                            : CUDA_ERROR_INVALID_VALUE;
}

SIMGPU_API cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  const simgpu::ApiName api_name(__func__);
  CUresult result =
      cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  if (result != CUDA_SUCCESS) return result;
  return cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}

SIMGPU_API cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (text == nullptr || length < 13) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(text, static_cast<size_t>(length), "0000:%02X:00.0", simgpu::pci_bus(device));
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (device == nullptr || text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned domain = 0;
  unsigned bus = 0;
  if (std::sscanf(text, "%x:%x", &domain, &bus) != 2) return CUDA_ERROR_INVALID_VALUE;
  for (int i = 0; i < options().devices; ++i) {
    if (simgpu::pci_bus(i) == bus) return *device = i, CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

SIMGPU_API cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType, CUdevice device) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *supported = 0;
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetTexture1DLinearMaxWidth(size_t* width, CUarray_format, unsigned,
                                              CUdevice device) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *width = 1 << 28;
  return CUDA_SUCCESS;
}
