// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/tests/support/gpu.h"

#include <cstdio>
#include <cstdlib>

namespace simgpu::test {

namespace {

constexpr unsigned kBlock = 64;

constexpr const char* kKernels = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 p, .param .u32 n, .param .u32 value)
{
  .reg .u32 %r<9>; .reg .u64 %d<4>; .reg .pred %p<2>;
  ld.param.u64 %d1, [p]; ld.param.u32 %r1, [n]; ld.param.u32 %r7, [value];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra done;
  mul.wide.u32 %d2, %r5, 4; add.u64 %d3, %d1, %d2;
  ld.global.u32 %r6, [%d3]; add.u32 %r6, %r6, %r7; st.global.u32 [%d3], %r6;
done: ret;
}
.visible .entry store(.param .u64 p, .param .u32 n, .param .u32 value)
{
  .reg .u32 %r<9>; .reg .u64 %d<4>; .reg .pred %p<2>;
  ld.param.u64 %d1, [p]; ld.param.u32 %r1, [n]; ld.param.u32 %r7, [value];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra done;
  mul.wide.u32 %d2, %r5, 4; add.u64 %d3, %d1, %d2;
  st.global.u32 [%d3], %r7;
done: ret;
}
.visible .entry copy(.param .u64 to, .param .u64 from, .param .u32 n)
{
  .reg .u32 %r<9>; .reg .u64 %d<6>; .reg .pred %p<2>;
  ld.param.u64 %d1, [to]; ld.param.u64 %d4, [from]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra done;
  mul.wide.u32 %d2, %r5, 4; add.u64 %d3, %d1, %d2; add.u64 %d5, %d4, %d2;
  ld.global.u32 %r6, [%d5]; st.global.u32 [%d3], %r6;
done: ret;
}
)";

void must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "%s: %s\n", what, name ? name : "?");
  std::exit(2);
}

CUresult launch(CUfunction function, uint32_t count, CUstream stream, void** arguments) {
  const unsigned blocks = count == 0 ? 1 : (count + kBlock - 1) / kBlock;
  return cuLaunchKernel(function, blocks, 1, 1, kBlock, 1, 1, 0, stream, arguments, nullptr);
}

}  // namespace

Gpu::Gpu(int device) {
  must(cuInit(0), "cuInit");
  must(cuDevicePrimaryCtxRetain(&context, device), "retain");
  must(cuCtxSetCurrent(context), "set current");
  must(cuModuleLoadData(&module, kKernels), "load");
  must(cuModuleGetFunction(&add, module, "add"), "add");
  must(cuModuleGetFunction(&copy, module, "copy"), "copy");
  must(cuModuleGetFunction(&store, module, "store"), "store");
}

CUresult Gpu::launch_add(CUdeviceptr p, uint32_t count, uint32_t value, CUstream stream) {
  void* arguments[] = {&p, &count, &value};
  return launch(add, count, stream, arguments);
}

CUresult Gpu::launch_store(CUdeviceptr p, uint32_t count, uint32_t value, CUstream stream) {
  void* arguments[] = {&p, &count, &value};
  return launch(store, count, stream, arguments);
}

CUresult Gpu::launch_copy(CUdeviceptr to, CUdeviceptr from, uint32_t count, CUstream stream) {
  void* arguments[] = {&to, &from, &count};
  return launch(copy, count, stream, arguments);
}

std::vector<uint32_t> Gpu::read(CUdeviceptr p, uint32_t count) {
  std::vector<uint32_t> words(count);
  must(cuCtxSynchronize(), "synchronize");
  must(cuMemcpyDtoH(words.data(), p, count * sizeof(uint32_t)), "read");
  return words;
}

CUstream new_stream(unsigned flags) {
  CUstream stream = nullptr;
  must(cuStreamCreate(&stream, flags), "stream");
  return stream;
}

CUevent new_event(unsigned flags) {
  CUevent event = nullptr;
  must(cuEventCreate(&event, flags), "event");
  return event;
}

CUdeviceptr allocate(size_t bytes) {
  CUdeviceptr address = 0;
  must(cuMemAlloc(&address, bytes), "cuMemAlloc");
  return address;
}

void* allocate_pinned(size_t bytes) {
  void* pointer = nullptr;
  must(cuMemHostAlloc(&pointer, bytes, 0), "cuMemHostAlloc");
  return pointer;
}

Gate::Gate() : word_(static_cast<volatile uint32_t*>(allocate_pinned(4))) {
  *word_ = 0;
}

void Gate::close(CUstream stream) {
  must(
      cuStreamWaitValue32(stream, reinterpret_cast<CUdeviceptr>(word_), 1, CU_STREAM_WAIT_VALUE_EQ),
      "gate");
}

void Gate::open() {
  *word_ = 1;
}

void Gate::shut() {
  *word_ = 0;
}

CUmemAllocationProp device_properties(int device) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return properties;
}

CUmemAllocationProp host_properties() {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
  return properties;
}

CUresult give_access(CUdeviceptr address, size_t bytes, int device) {
  const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device},
                                  CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  return cuMemSetAccess(address, bytes, &access, 1);
}

Extent new_extent(size_t bytes) {
  Extent extent;
  extent.bytes = bytes;
  const CUmemAllocationProp properties = device_properties();
  must(cuMemCreate(&extent.handle, bytes, &properties, 0), "cuMemCreate");
  extent.address = map_again(extent);
  return extent;
}

CUdeviceptr map_again(const Extent& extent) {
  CUdeviceptr address = 0;
  must(cuMemAddressReserve(&address, extent.bytes, 0, 0, 0), "cuMemAddressReserve");
  must(cuMemMap(address, extent.bytes, 0, extent.handle, 0), "cuMemMap");
  must(give_access(address, extent.bytes), "cuMemSetAccess");
  return address;
}

}  // namespace simgpu::test
