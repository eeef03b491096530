// SPDX-License-Identifier: Apache-2.0
#pragma once
// The device as the training program uses it: an allocator, streams that count what is submitted to
// them, and the account of live bytes. Usable from any host thread. Failures throw (errors.h).

#include <atomic>
#include <mutex>
#include <type_traits>

#include "tests/workloads/errors.h"
#include "tests/workloads/kernels/launchers.h"
#include "tests/workloads/tensor.h"
#include "tests/workloads/truth.h"

namespace gpt {

// State shared by all queues.
struct Device {
  bool async_allocator = false;
  Truth* truth = nullptr;         // null: no account of lives is kept
  std::atomic<int64_t> step = 0;  // 0 before the first

  std::mutex mutex;  // guards the rest
  int64_t ops = 0;   // submitted so far
  int64_t tensors = 0;
  int64_t clock = 0;  // allocations and frees so far
  int64_t live_bytes = 0;
  int64_t peak_bytes = 0;
};

// An event that marks a point in a queue.
class Event {
 public:
  Event() { CHECK_CUDA(cudaEventCreateWithFlags, &event_, cudaEventDisableTiming); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }
  void synchronize() const { CHECK_CUDA(cudaEventSynchronize, event_); }

 private:
  cudaEvent_t event_ = nullptr;
};

// Pinned host memory.
template <typename T>
class PinnedArray {
 public:
  explicit PinnedArray(int64_t count) {
    void* data = nullptr;
    CHECK_CUDA(cudaHostAlloc, &data, size_t(count) * sizeof(T), cudaHostAllocDefault);
    data_ = static_cast<T*>(data);
  }
  ~PinnedArray() { cudaFreeHost(data_); }
  PinnedArray(const PinnedArray&) = delete;
  PinnedArray& operator=(const PinnedArray&) = delete;
  T* data() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
};

// A stream. Tensors allocated from a queue are freed in its order if the allocator is
// stream-ordered.
class Queue {
 public:
  Queue(Device& device, const char* name);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  Device& device() { return device_; }
  cudaStream_t stream() const { return stream_; }

  Tensor allocate(int64_t bytes, Role role, const char* name, int layer);
  Tensor floats(int64_t count, Role role, const char* name, int layer) {
    return allocate(count * int64_t{sizeof(float)}, role, name, layer);
  }

  // `arguments` are the kernel's: Operands where it takes pointers.
  template <typename... Parameters, typename... Arguments>
  void launch(const char* kernel, void (*launcher)(Groups, cudaStream_t, Parameters...),
              Groups groups, const Arguments&... arguments) {
    const int64_t op = next_op("kernel", kernel);
    launcher(groups, stream_, pass<Parameters>(op, arguments)...);
    check_cuda(cudaGetLastError(), kernel);
  }

  void zero(const Tensor& tensor);
  void copy_in(const Tensor& to, const void* pinned, int64_t bytes);
  void copy_out(void* pinned, const Tensor& from, int64_t bytes);

  void record(const Event& event) { CHECK_CUDA(cudaEventRecord, event.get(), stream_); }
  void wait(const Event& event) { CHECK_CUDA(cudaStreamWaitEvent, stream_, event.get(), 0u); }
  void synchronize() { CHECK_CUDA(cudaStreamSynchronize, stream_); }

  // From here on the tensor's memory is freed in this queue's order, which the caller has made the
  // later one.
  void take(const Tensor& tensor) { tensor->queue = this; }

 private:
  friend struct Buffer;

  int64_t next_op(const char* kind, const char* name);
  void note_use(int64_t op, const Operand& operand);
  void release(Buffer& buffer) noexcept;

  template <typename Parameter>
  Parameter pass(int64_t op, const Operand& operand) {
    if (operand.tensor == nullptr) return nullptr;
    note_use(op, operand);
    return static_cast<Parameter>(operand.tensor->address);
  }
  template <typename Parameter, typename Argument>
  requires std::is_arithmetic_v<Argument> Parameter pass(int64_t, Argument argument) {
    return static_cast<Parameter>(argument);
  }

  Device& device_;
  const char* name_;
  cudaStream_t stream_ = nullptr;
};

// LAUNCH(queue, gpt_add, groups, reads(a), reads(b), writes(c), count)
#define LAUNCH(queue, kernel, ...) (queue).launch(#kernel, ::gpt::launch_##kernel, __VA_ARGS__)

}  // namespace gpt
