// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/clients/client.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace simgpu::client {
namespace {

constexpr const char* kKernels = R"(.version 7.0
.target sm_80
.address_size 64

.visible .entry fill(.param .u64 to, .param .u32 value)
{
  .reg .b64 %rd<3>; .reg .b32 %r<6>;
  ld.param.u64 %rd1, [to];
  ld.param.u32 %r1, [value];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  mul.wide.u32 %rd2, %r5, 4;
  add.u64 %rd2, %rd1, %rd2;
  add.u32 %r1, %r1, %r5;
  st.global.u32 [%rd2], %r1;
  ret;
}

.visible .entry copy(.param .u64 to, .param .u64 from)
{
  .reg .b64 %rd<5>; .reg .b32 %r<6>;
  ld.param.u64 %rd1, [to];
  ld.param.u64 %rd2, [from];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  mul.wide.u32 %rd3, %r5, 4;
  add.u64 %rd4, %rd2, %rd3;
  ld.global.u32 %r1, [%rd4];
  add.u64 %rd4, %rd1, %rd3;
  st.global.u32 [%rd4], %r1;
  ret;
}

.visible .entry increment(.param .u64 at)
{
  .reg .b64 %rd<3>; .reg .b32 %r<6>;
  ld.param.u64 %rd1, [at];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  mul.wide.u32 %rd2, %r5, 4;
  add.u64 %rd2, %rd1, %rd2;
  ld.global.u32 %r1, [%rd2];
  add.u32 %r1, %r1, 1;
  st.global.u32 [%rd2], %r1;
  ret;
}
)";

constexpr unsigned kBlock = 128;

CUfunction function(const char* name) {
  static const CUmodule module = [] {
    CUmodule loaded = nullptr;
    MUST(cuModuleLoadData(&loaded, kKernels));
    return loaded;
  }();
  CUfunction found = nullptr;
  MUST(cuModuleGetFunction(&found, module, name));
  return found;
}

void launch(const char* name, CUstream stream, void** arguments) {
  MUST(cuLaunchKernel(function(name), kCount / kBlock, 1, 1, kBlock, 1, 1, 0, stream, arguments,
                      nullptr));
}

CUmemAllocationProp on_device() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = 0;
  return properties;
}

const char* name_of(CUresult result) {
  const char* name = nullptr;
  return cuGetErrorName(result, &name) == CUDA_SUCCESS ? name : "an unknown code";
}

}  // namespace

void must(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "client: %s: %s\n", call, name_of(result));
  std::exit(1);
}

int refused(CUresult result, CUresult expected) {
  std::fprintf(stderr, "client: the driver says %s\n", name_of(result));
  return result == expected ? kRefused : 1;
}

void launch_fill(CUstream stream, CUdeviceptr to, unsigned value) {
  void* arguments[] = {&to, &value};
  launch("fill", stream, arguments);
}

void launch_copy(CUstream stream, CUdeviceptr to, CUdeviceptr from) {
  void* arguments[] = {&to, &from};
  launch("copy", stream, arguments);
}

void launch_increment(CUstream stream, CUdeviceptr at) {
  void* arguments[] = {&at};
  launch("increment", stream, arguments);
}

CUstream make_stream() {
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

CUevent make_event() {
  CUevent event = nullptr;
  MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  return event;
}

void join(CUstream waiter, CUstream stream) {
  const CUevent event = make_event();
  MUST(cuEventRecord(event, stream));
  MUST(cuStreamWaitEvent(waiter, event, 0));
  MUST(cuEventDestroy(event));
}

size_t granule() {
  const CUmemAllocationProp properties = on_device();
  size_t bytes = 0;
  MUST(cuMemGetAllocationGranularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  return bytes;
}

CUdeviceptr reserve(size_t bytes) {
  CUdeviceptr address = 0;
  MUST(cuMemAddressReserve(&address, bytes, 0, 0, 0));
  return address;
}

CUmemGenericAllocationHandle create_granule() {
  const CUmemAllocationProp properties = on_device();
  CUmemGenericAllocationHandle handle = 0;
  MUST(cuMemCreate(&handle, granule(), &properties, 0));
  return handle;
}

void map_granule(CUdeviceptr address, CUmemGenericAllocationHandle handle) {
  MUST(cuMemMap(address, granule(), 0, handle, 0));
}

void set_access(CUdeviceptr address) {
  CUmemAccessDesc access{};
  access.location = on_device().location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  MUST(cuMemSetAccess(address, granule(), &access, 1));
}

}  // namespace simgpu::client

int main(int count, char** arguments) {
  const bool right = count == 2 && std::strcmp(arguments[1], "right") == 0;
  if (!right && (count != 2 || std::strcmp(arguments[1], "wrong") != 0)) {
    std::fprintf(stderr, "usage: %s right|wrong\n", arguments[0]);
    return 2;
  }
  CUcontext context = nullptr;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  return simgpu::client::run(right);
}
