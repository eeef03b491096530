// SPDX-License-Identifier: Apache-2.0
// hook_cost [--batches N] [--calls N]: what liboffload adds to a call of the driver. To be run with
// liboffload preloaded and the null driver as libcuda.so.1. Prints one line per measure, its name
// and nanoseconds; what is called "added" is over the bare driver's call.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/bench/null_driver/null_driver.h"
#include "tests/bench/timing.h"

namespace {

constexpr size_t kMovable = 4ull << 20;  // OFFLOAD_MIN_SIZE
constexpr size_t kSmall = 100'000;       // from a slab
constexpr size_t kStructBytes = 32 << 10;
constexpr size_t kBuffers = 110;         // as many as PyTorch's foreach kernels take
constexpr size_t kWordsPerPointer = 10;  // the others are sizes and the like

const NullDriverEntries kExported = {
    .launch_kernel = &cuLaunchKernel,
    .mem_alloc = &cuMemAlloc_v2,
    .mem_free = &cuMemFree_v2,
    .mem_alloc_async = &cuMemAllocAsync,
    .mem_free_async = &cuMemFreeAsync,
    .memcpy_dtod_async = &cuMemcpyDtoDAsync_v2,
    .event_record = &cuEventRecord,
};

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "hook_cost: %s failed with error %d\n", what, static_cast<int>(result));
  std::exit(1);
}

class HookCost {
 public:
  explicit HookCost(const bench::Effort& effort) : effort_(effort) {
    check(cuInit(0), "cuInit");
    CUcontext context = nullptr;
    check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    check(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    check(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    for (CUdeviceptr& buffer : buffers_) check(cuMemAlloc_v2(&buffer, kMovable), "cuMemAlloc");
  }

  void launches() {
    for (const size_t pointers : {size_t{0}, size_t{10}, size_t{100}}) {
      std::vector<void*> parameters;
      for (size_t i = 0; i < pointers; ++i) parameters.push_back(&buffers_[i]);
      char name[64];
      std::snprintf(name, sizeof(name), "launch_%zu_pointers_added_ns", pointers);
      launch(name, {pointers, sizeof(CUdeviceptr)}, parameters);
    }
    std::vector<uint64_t> words(kStructBytes / sizeof(uint64_t));
    for (size_t i = 0; i < words.size(); ++i) {
      words[i] = i % kWordsPerPointer == 0 ? buffers_[i / kWordsPerPointer % kBuffers] : i;
    }
    std::vector<void*> parameters = {words.data()};
    launch("launch_struct_32k_added_ns", {1, kStructBytes}, parameters);
  }

  void allocations() {
    const auto on_stream = [this](size_t bytes) {
      return [this, bytes](const NullDriverEntries& driver) {
        CUdeviceptr address = 0;
        driver.mem_alloc_async(&address, bytes, stream_);
        driver.mem_free_async(address, stream_);
      };
    };
    print("malloc_free_parked_ns", measure(on_stream(kMovable)).hooked_ns);
    print("malloc_free_parked_sync_ns", measure([](const NullDriverEntries& driver) {
                                          CUdeviceptr address = 0;
                                          driver.mem_alloc(&address, kMovable);
                                          driver.mem_free(address);
                                        }).hooked_ns);
    print("malloc_free_slab_ns", measure(on_stream(kSmall)).hooked_ns);
  }

  void copies_and_events() {
    print("copy_added_ns", measure([this](const NullDriverEntries& driver) {
                             driver.memcpy_dtod_async(buffers_[0], buffers_[1], kMovable, stream_);
                           }).added_ns());
    print("event_record_added_ns", measure([this](const NullDriverEntries& driver) {
                                     driver.event_record(event_, stream_);
                                   }).added_ns());
  }

 private:
  void launch(const char* name, const NullKernel& kernel, std::vector<void*>& parameters) {
    // The caller of the driver keeps its functions.
    auto* function = reinterpret_cast<CUfunction>(new NullKernel(kernel));
    void** arguments = parameters.data();
    print(name, measure([=, this](const NullDriverEntries& driver) {
                  driver.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, stream_, arguments, nullptr);
                }).added_ns());
  }

  template <typename Call>
  bench::Cost measure(Call call) const {
    const NullDriverEntries& exported = kExported;
    const NullDriverEntries& bare = *null_driver_entries();
    return bench::compare(
        effort_, [&] { call(exported); }, [&] { call(bare); });
  }

  static void print(const char* name, double nanoseconds) {
    std::printf("%s %.2f\n", name, nanoseconds);
    std::fflush(stdout);
  }

  const bench::Effort effort_;
  CUstream stream_ = nullptr;
  CUevent event_ = nullptr;
  CUdeviceptr buffers_[kBuffers] = {};
};

}  // namespace

int main(int count, char** arguments) {
  bench::Effort effort;
  for (int i = 1; i + 1 < count; i += 2) {
    const uint64_t number = std::strtoull(arguments[i + 1], nullptr, 10);
    if (std::strcmp(arguments[i], "--batches") == 0) effort.batches = number;
    if (std::strcmp(arguments[i], "--calls") == 0) effort.calls = number;
  }
  if (kExported.launch_kernel == null_driver_entries()->launch_kernel) {
    std::fprintf(stderr, "hook_cost: nothing stands before the driver; preload liboffload.so\n");
    return 1;
  }
  // A process with one thread gets cheaper locks than any training has.
  std::thread([] {
    for (;;) pause();
  }).detach();
  HookCost cost(effort);
  cost.launches();
  cost.allocations();
  cost.copies_and_events();
  return 0;
}
