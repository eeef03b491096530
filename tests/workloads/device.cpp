// SPDX-License-Identifier: Apache-2.0
#include "tests/workloads/device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace gpt {

Queue::Queue(Device& device, const char* name) : device_(device), name_(name) {
  CHECK_CUDA(cudaStreamCreateWithFlags, &stream_, cudaStreamNonBlocking);
}

Queue::~Queue() {
  cudaStreamDestroy(stream_);
}

Tensor Queue::allocate(int64_t bytes, Role role, const char* name, int layer) {
  void* address = nullptr;
  const size_t size = size_t(bytes);
  const cudaError_t code = device_.async_allocator ? cudaMallocAsync(&address, size, stream_)
                                                   : cudaMalloc(&address, size);
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // it is handled: later calls must not report it
    throw OutOfMemory(device_.step, bytes, role_name(role));
  }
  check_cuda(code, device_.async_allocator ? "cudaMallocAsync" : "cudaMalloc");

  auto tensor = std::make_shared<Buffer>();
  tensor->queue = this;
  tensor->address = address;
  tensor->bytes = bytes;
  tensor->role = role;
  tensor->name = name;
  tensor->layer = layer;
  const std::lock_guard lock(device_.mutex);
  tensor->number = device_.tensors++;
  tensor->born_step = device_.step;
  tensor->born_op = device_.ops;
  tensor->born_clock = device_.clock++;
  device_.live_bytes += bytes;
  device_.peak_bytes = std::max(device_.peak_bytes, device_.live_bytes);
  return tensor;
}

Buffer::~Buffer() {
  if (address != nullptr) queue->release(*this);
}

void Queue::release(Buffer& buffer) noexcept {
  {
    const std::lock_guard lock(device_.mutex);
    device_.live_bytes -= buffer.bytes;
    const int64_t clock = device_.clock++;
    if (device_.truth != nullptr) device_.truth->freed(buffer, device_.ops, clock);
  }
  const char* api = device_.async_allocator ? "cudaFreeAsync" : "cudaFree";
  const cudaError_t code =
      device_.async_allocator ? cudaFreeAsync(buffer.address, stream_) : cudaFree(buffer.address);
  if (code != cudaSuccess && code != cudaErrorCudartUnloading) {
    // A destructor cannot throw, and a free that fails must not pass unseen.
    std::fprintf(stderr, "%s\n", CudaError(api, code).what());
    std::fflush(nullptr);
    std::_Exit(kExitCudaError);
  }
}

int64_t Queue::next_op(const char* kind, const char* name) {
  const std::lock_guard lock(device_.mutex);
  const int64_t op = device_.ops++;
  if (device_.truth != nullptr) device_.truth->op(op, kind, name, name_, device_.step);
  return op;
}

void Queue::note_use(int64_t op, const Operand& operand) {
  if (device_.truth == nullptr) return;
  const std::lock_guard lock(device_.mutex);
  operand.tensor->uses.push_back({op, operand.is_read, operand.is_written});
}

void Queue::zero(const Tensor& tensor) {
  note_use(next_op("fill", "zero"), writes(tensor));
  CHECK_CUDA(cudaMemsetAsync, tensor->address, 0, size_t(tensor->bytes), stream_);
}

void Queue::copy_in(const Tensor& to, const void* pinned, int64_t bytes) {
  note_use(next_op("copy in", "copy"), writes(to));
  CHECK_CUDA(cudaMemcpyAsync, to->address, pinned, size_t(bytes), cudaMemcpyHostToDevice, stream_);
}

void Queue::copy_out(void* pinned, const Tensor& from, int64_t bytes) {
  note_use(next_op("copy out", "copy"), reads(from));
  CHECK_CUDA(cudaMemcpyAsync, pinned, from->address, size_t(bytes), cudaMemcpyDeviceToHost,
             stream_);
}

}  // namespace gpt
